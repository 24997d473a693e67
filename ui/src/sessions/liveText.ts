/** What an agent is writing at this moment, out of deltas. It is nothing but a foretaste: the event that is stored takes its place. */

import { object, text } from '../pure/fields';
import type { Fields } from '../wire';
import type { StoredEvent } from './timeline';

export interface LiveBlock {
  /** The call of the sub-agent that writes; empty for the agent itself. */
  parent: string;
  kind: 'text' | 'thinking';
  /** The end of it. */
  text: string;
}

/** So much of its end is shown; the whole comes when it is stored. */
const SHOWN = 8192;

export class LiveText {
  private by = new Map<string, LiveBlock>();

  get now(): LiveBlock[] {
    return [...this.by.values()].filter((written) => written.text.trim() !== '').map((written) => ({ ...written }));
  }

  /** A piece, as Claude Code sends it. */
  delta(message: Fields): void {
    const parent = text(message['parent_tool_use_id']);
    const event = object(message['event']);
    const delta = object(event['delta']);
    const [kind, piece] =
      typeof delta['thinking'] === 'string'
        ? (['thinking', delta['thinking']] as const)
        : (['text', delta['text']] as const);
    if (event['type'] === 'content_block_start' || event['type'] === 'message_start') this.by.delete(parent);
    if (typeof piece !== 'string') return;
    const known = this.by.get(parent);
    const before = known?.kind === kind ? known.text : '';
    this.by.set(parent, { parent, kind, text: (before + piece).slice(-SHOWN) });
  }

  /** An event was stored: what it says is not being written any more, and after a turn nothing is. */
  stored({ event }: StoredEvent): void {
    switch (event.type) {
      case 'content':
      case 'thinking':
      case 'tool_use':
        this.by.delete(String(event.parent_tool_use_id ?? ''));
        break;
      case 'start':
      case 'complete':
      case 'error':
        this.by.clear();
    }
  }
}
