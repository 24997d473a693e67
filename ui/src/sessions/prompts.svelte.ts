/** The prompts of turns, loaded when they are shown: an event only names the node of its prompt. */

import { SvelteMap } from 'svelte/reactivity';
import { errorText } from '../pure/text';
import { call } from '../stores/api';
import { promptText } from './promptText';

/** The size of the cache. */
const MOST = 500;

class Prompts {
  private known = new SvelteMap<string, string>();
  private asked = new Set<string>();

  /** The text, or `…` while it is loading. */
  of(node: string): string {
    const text = this.known.get(node);
    if (text === undefined && !this.asked.has(node)) void this.fetch(node);
    return text ?? '…';
  }

  private async fetch(node: string): Promise<void> {
    this.asked.add(node);
    let text: string;
    try {
      text = promptText((await call('arbor.node_get', { node_id: node })).node.content);
    } catch (error) {
      text = `(the prompt could not be loaded: ${errorText(error)})`;
    }
    if (this.known.size >= MOST) {
      this.known.clear();
      this.asked.clear();
    }
    this.known.set(node, text);
  }
}

export const prompts = new Prompts();
