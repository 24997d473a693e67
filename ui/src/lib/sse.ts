/** Server-sent events out of pieces of text, however they were cut. */

export interface Block {
  id: string;
  event: string;
  data: string;
}

export class Blocks {
  private rest = '';

  /** Takes a piece; gives the events that are whole with it. Comments are none. */
  push(piece: string): Block[] {
    this.rest += piece;
    const parts = this.rest.split('\n\n');
    this.rest = parts.pop() ?? '';
    return parts.map(read).filter((block) => block.data !== '');
  }
}

function read(text: string): Block {
  const block: Block = { id: '', event: 'message', data: '' };
  for (const line of text.split('\n')) {
    const at = line.indexOf(': ');
    if (at < 1) continue;
    const value = line.slice(at + 2);
    if (line.startsWith('id')) block.id = value;
    else if (line.startsWith('event')) block.event = value;
    else if (line.startsWith('data')) block.data += value;
  }
  return block;
}
