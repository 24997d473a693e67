/** A parser for server-sent events that arrive in chunks. */

export interface SseEvent {
  id: string;
  event: string;
  data: string;
}

export class SseParser {
  private rest = '';

  /** Adds a chunk. Returns the events that it completes; comments are skipped. */
  push(chunk: string): SseEvent[] {
    this.rest += chunk;
    const blocks = this.rest.split('\n\n');
    this.rest = blocks.pop() ?? '';
    return blocks.map(parse).filter((event) => event.data !== '');
  }
}

function parse(block: string): SseEvent {
  const event: SseEvent = { id: '', event: 'message', data: '' };
  for (const line of block.split('\n')) {
    const at = line.indexOf(': ');
    if (at < 1) continue;
    const value = line.slice(at + 2);
    if (line.startsWith('id')) event.id = value;
    else if (line.startsWith('event')) event.event = value;
    else if (line.startsWith('data')) event.data += value;
  }
  return event;
}
