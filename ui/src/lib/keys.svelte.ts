/** Keys. Each view says what its keys do; one list of them is the help. Where something is typed, keys are letters. */

import { untrack } from 'svelte';

export interface Key {
  key: string;
  does: string;
  run(event: KeyboardEvent): void;
}

class Keys {
  private layers = $state.raw<Key[][]>([]);
  help = $state(false);
  all = $derived(this.layers.flat());

  /** These keys count until the returned function is called; what was added last goes first. */
  add(keys: Key[]): () => void {
    // It is called in effects, which are not to run again because of other keys.
    untrack(() => (this.layers = [keys, ...this.layers]));
    return () => untrack(() => (this.layers = this.layers.filter((layer) => layer !== keys)));
  }

  press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat && event.key.length === 1 && !'jk'.includes(event.key)) return;
    const target = event.target instanceof Element ? event.target : null;
    if (target?.closest('input, textarea, select, [contenteditable="true"], dialog')) return;
    if (event.key === '?') {
      this.help = !this.help;
      event.preventDefault();
      return;
    }
    const found = this.all.find((key) => key.key === event.key);
    if (!found) return;
    event.preventDefault();
    found.run(event);
  }
}

export const keys = new Keys();
