/** The prompts of turns, loaded when they are shown: an event only names the node of its prompt. */

import { SvelteMap, SvelteSet } from 'svelte/reactivity';
import { errorText } from '../pure/text';
import { call } from '../stores/api';
import { promptImages, promptText } from './promptText';

/** The size of the cache. */
const MOST = 500;

class Prompts {
  private known = new SvelteMap<string, string>();
  /** The prompts that have images. The images themselves are loaded by the view that shows them. */
  private illustrated = new SvelteSet<string>();
  private asked = new Set<string>();

  /** The text, or `…` while it is loading. */
  of(node: string): string {
    const text = this.known.get(node);
    if (text === undefined && !this.asked.has(node)) void this.fetch(node);
    return text ?? '…';
  }

  hasImages(node: string): boolean {
    return this.illustrated.has(node);
  }

  private async fetch(node: string): Promise<void> {
    if (this.known.size >= MOST) {
      this.known.clear();
      this.asked.clear();
      this.illustrated.clear();
    }
    this.asked.add(node);
    let text: string;
    try {
      const { content } = (await call('arbor.node_get', { node_id: node })).node;
      text = promptText(content);
      if (promptImages(content).length > 0) this.illustrated.add(node);
    } catch (error) {
      text = `(the prompt could not be loaded: ${errorText(error)})`;
    }
    this.known.set(node, text);
  }
}

export const prompts = new Prompts();
