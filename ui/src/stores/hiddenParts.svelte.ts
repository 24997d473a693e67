/**
 * Tracks which parts of an input are not shown. A component that truncates its content reports the hidden characters to the
 * `HiddenParts` above it in the component tree. An input can only be allowed when nothing of it is hidden.
 */

import { getContext, setContext, untrack } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';

const KEY = Symbol('shown');

interface Hidden {
  /** The number of hidden characters. */
  left: number;
  /** Shows them. */
  show(): void;
}

export class HiddenParts {
  private parts = new SvelteMap<symbol, Hidden>();

  /** Whether nothing is hidden. */
  get complete(): boolean {
    return this.parts.size === 0;
  }

  /** The total number of hidden characters. */
  get left(): number {
    return [...this.parts.values()].reduce((sum, part) => sum + part.left, 0);
  }

  add(part: Hidden): () => void {
    const key = Symbol();
    this.parts.set(key, part);
    return () => this.parts.delete(key);
  }

  showAll(): void {
    for (const part of [...this.parts.values()]) part.show();
  }
}

/** Makes all components below this one report to it. */
export function provideHiddenParts(shown: HiddenParts): void {
  setContext(KEY, shown);
}

/** Reports the hidden characters of this component while there are any. */
export function reportHidden(left: () => number, show: () => void): void {
  const shown = getContext<HiddenParts | undefined>(KEY);
  if (!shown) return;
  $effect(() => {
    const now = left();
    if (now > 0) return untrack(() => shown.add({ left: now, show }));
  });
}

/** Calls `reached` when the end of the content that scrolls in `root` becomes visible, until the returned function is called. */
export function watchEnd(end: HTMLElement, root: HTMLElement, reached: () => void): () => void {
  const watch = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && reached(), {
    root,
  });
  watch.observe(end);
  return () => watch.disconnect();
}
