/** Keys. Each view says what its keys do; one list of them is the help. In a text field, in a list to choose from and in a dialog, keys are for that alone. */

import { untrack } from 'svelte';

export interface Key {
  key: string;
  does: string;
  run(event: KeyboardEvent): void;
}

/** Controls that take no letters: a check box that was ticked leaves all keys working but the space, which ticks it again. */
const LETTERLESS = ['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'range', 'color', 'file'];

function takesKeys(target: Element): boolean {
  if (target.closest('textarea, select, [contenteditable="true"], dialog')) return true;
  return target instanceof HTMLInputElement && !LETTERLESS.includes(target.type);
}

class Keys {
  /** Whether the last thing that was used is a mouse or a finger. */
  private pointed = false;
  private layers = $state.raw<Key[][]>([]);
  help = $state(false);
  all = $derived(this.layers.flat());

  /** These keys count until the returned function is called; what was added last goes first. */
  add(keys: Key[]): () => void {
    // It is called in effects, which are not to run again because of other keys.
    untrack(() => (this.layers = [keys, ...this.layers]));
    return () => untrack(() => (this.layers = this.layers.filter((layer) => layer !== keys)));
  }

  point(): void {
    this.pointed = true;
  }

  /** A list to choose from takes letters. Once somebody has chosen by pointing, or leaves it by Escape, keys are keys again; arrow keys stay in it. */
  chosen(event: Event): void {
    if (this.pointed && event.target instanceof HTMLSelectElement && !event.target.closest('dialog'))
      event.target.blur();
  }

  press(event: KeyboardEvent): void {
    this.pointed = false;
    if (event.key === 'Escape' && event.target instanceof HTMLSelectElement && !event.target.closest('dialog'))
      event.target.blur();
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      event.isComposing ||
      (event.repeat && event.key.length === 1 && !'jk'.includes(event.key))
    )
      return;
    if (event.target instanceof Element && takesKeys(event.target)) return;
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
