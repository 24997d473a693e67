/** The text that an agent is generating, collected from deltas. The stored event replaces it later. */

import { object, text } from '../pure/fields';
import type { Fields } from '../wire';
import type { StoredEvent } from './timeline';

export interface LiveBlock {
  /** The call of the sub-agent that generates it; empty for the agent itself. */
  parent: string;
  kind: 'text' | 'thinking';
  /** The end of the text. */
  text: string;
}

/** The number of characters that are kept; the stored event has all of them. */
const SHOWN = 8192;

export class LiveText {
  private by = new Map<string, LiveBlock>();

  get now(): LiveBlock[] {
    return [...this.by.values()].filter((block) => block.text.trim() !== '').map((block) => ({ ...block }));
  }

  /** Adds a delta of Claude Code. */
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

  /** Removes the text that a stored event replaces; at the end of a turn, all texts. */
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
