/** Keyboard shortcuts. Each view registers its keys, and the help lists them. Text fields, select boxes and dialogs receive their keys themselves. */

import { KeyGate } from '../pure/keyGate';

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
  private gate = new KeyGate();
  // Not reactive: the teardown of an effect reads the value that a state had before, and would bring removed keys back.
  private layers: Key[][] = [];
  /** Another object after each change of the layers. */
  private version = $state.raw({});
  help = $state(false);
  all = $derived(this.version && this.layers.flat());

  /** Registers keys until the returned function is called. Keys that were added last take precedence. */
  add(keys: Key[]): () => void {
    this.set([keys, ...this.layers]);
    return () => this.set(this.layers.filter((layer) => layer !== keys));
  }

  private set(layers: Key[][]): void {
    this.layers = layers;
    this.version = {};
  }

  /** A dialog is open until the returned function is called. No shortcut acts meanwhile. */
  dialog(): () => void {
    this.gate.opened();
    return () => this.gate.closed();
  }

  point(): void {
    this.pointed = true;
    this.gate.pointed();
  }

  /** A select box takes letters. After a choice by pointer, or Escape, it loses the focus so that shortcuts work again. */
  chosen(event: Event): void {
    if (this.pointed && event.target instanceof HTMLSelectElement && !event.target.closest('dialog'))
      event.target.blur();
  }

  press(event: KeyboardEvent): void {
    this.pointed = false;
    const admitted = this.gate.pressed(performance.now());
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
    if (!admitted || (event.target instanceof Element && takesKeys(event.target))) return;
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
