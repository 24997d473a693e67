/**
 * Whether all of something is on the page. Components that cut what they show report what they leave out to the `HiddenParts` above them, if
 * there is one; what nobody may allow unseen is rendered below one.
 */

import { getContext, setContext, untrack } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';

const KEY = Symbol('shown');

interface Hidden {
  /** Characters that are not on the page. */
  left: number;
  /** Puts them there. */
  show(): void;
}

export class HiddenParts {
  private parts = new SvelteMap<symbol, Hidden>();

  /** Whether nothing is left out. */
  get complete(): boolean {
    return this.parts.size === 0;
  }

  /** How many characters are left out. */
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

/** Everything below this component reports to it. */
export function provideHiddenParts(shown: HiddenParts): void {
  setContext(KEY, shown);
}

/** Reports what this component leaves out, for as long as it does. */
export function reportHidden(left: () => number, show: () => void): void {
  const shown = getContext<HiddenParts | undefined>(KEY);
  if (!shown) return;
  $effect(() => {
    const now = left();
    if (now > 0) return untrack(() => shown.add({ left: now, show }));
  });
}

/** Calls `reached` when the end of what scrolls in `root` is in sight, until the returned function is called. */
export function watchEnd(end: HTMLElement, root: HTMLElement, reached: () => void): () => void {
  const watch = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && reached(), {
    root,
  });
  watch.observe(end);
  return () => watch.disconnect();
}
