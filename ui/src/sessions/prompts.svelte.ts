/** The prompts of turns, fetched when they are looked at: an event says only where in the conversation one stands. */

import { SvelteMap } from 'svelte/reactivity';
import { errorText } from '../pure/text';
import { call } from '../stores/api';
import { resultText } from './toolCall';

/** So many are kept. */
const MOST = 500;

class Prompts {
  private known = new SvelteMap<string, string>();
  private asked = new Set<string>();

  /** The text, as soon as it is there. */
  of(node: string): string {
    const text = this.known.get(node);
    if (text === undefined && !this.asked.has(node)) void this.fetch(node);
    return text ?? '…';
  }

  private async fetch(node: string): Promise<void> {
    this.asked.add(node);
    let text: string;
    try {
      text = resultText((await call('arbor.node_get', { node_id: node })).node.content);
    } catch (error) {
      text = `(the prompt cannot be read: ${errorText(error)})`;
    }
    if (this.known.size >= MOST) {
      this.known.clear();
      this.asked.clear();
    }
    this.known.set(node, text);
  }
}

export const prompts = new Prompts();
