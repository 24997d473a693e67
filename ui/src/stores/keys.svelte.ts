/** Keyboard shortcuts. Each view registers its keys, and the help lists them. Text fields, select boxes and dialogs receive their keys themselves. */

import { untrack } from 'svelte';

export interface Key {
  key: string;
  does: string;
  run(event: KeyboardEvent): void;
}

/** Inputs that take no letters: shortcuts work while they have the focus. */
const LETTERLESS = ['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'range', 'color', 'file'];

function takesKeys(target: Element): boolean {
  if (target.closest('textarea, select, [contenteditable="true"], dialog')) return true;
  return target instanceof HTMLInputElement && !LETTERLESS.includes(target.type);
}

class Keys {
  /** Whether the last input came from a pointer. */
  private pointed = false;
  private layers = $state.raw<Key[][]>([]);
  help = $state(false);
  all = $derived(this.layers.flat());

  /** Registers keys until the returned function is called. Keys that were added last take precedence. */
  add(keys: Key[]): () => void {
    // Effects call this, and must not run again when other keys change.
    untrack(() => (this.layers = [keys, ...this.layers]));
    return () => untrack(() => (this.layers = this.layers.filter((layer) => layer !== keys)));
  }

  point(): void {
    this.pointed = true;
  }

  /** A select box takes letters. After a choice by pointer, or Escape, it loses the focus so that shortcuts work again. */
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
