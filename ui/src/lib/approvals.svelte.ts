/** The open approvals, oldest first, as the hub tells of them; and those that came to their end while they were looked at. */

import { SvelteMap } from 'svelte/reactivity';
import { call } from './api';
import { live } from './live.svelte';
import type { Approval } from '../wire';

/** So many of those that were answered elsewhere are still shown as such. */
const REMEMBERED = 50;

class Approvals {
  private numbers = new Map<string, number>();
  /** Came to their end since the last look began. */
  private over = new Set<string>();
  private all = new SvelteMap<string, Approval>();
  /** Came to their end lately, newest first. */
  ended = $state.raw<Approval[]>([]);
  /** Whether all that was open has been seen once. */
  known = $state(false);

  open = $derived(
    [...this.all.values()].sort((a, b) => a.created_at - b.created_at || this.number(a.id) - this.number(b.id)),
  );

  constructor() {
    live.listen({
      begun: () => void this.look(),
      approval: (_, approval) => this.told(approval),
    });
  }

  /** Which one it was of all that were seen, in the order in which the hub told of them. */
  number(id: string): number {
    return this.numbers.get(id) ?? 0;
  }

  get(id: string): Approval | undefined {
    return this.all.get(id);
  }

  /** What one knows of an approval now, from whatever source. */
  told(approval: Approval): void {
    if (approval.status === 'pending') {
      this.put(approval);
      return;
    }
    this.over.add(approval.id);
    const others = this.ended.filter((one) => one.id !== approval.id);
    if (this.all.delete(approval.id) || others.length < this.ended.length)
      this.ended = [approval, ...others].slice(0, REMEMBERED);
  }

  private put(approval: Approval): void {
    if (!this.numbers.has(approval.id)) this.numbers.set(approval.id, this.numbers.size + 1);
    this.all.set(approval.id, approval);
  }

  /** Looks at all that is open: what is not among it any more came to its end while the hub was away. */
  private async look(): Promise<void> {
    // eslint-disable-next-line svelte/prefer-svelte-reactivity -- nothing on the page reads it
    const before = new Set(this.all.keys());
    this.over.clear();
    let open: Approval[];
    try {
      open = (await call('loopback.pending')).approvals;
    } catch {
      return; // The stream breaks as well then, and begins again.
    }
    for (const approval of open) {
      before.delete(approval.id);
      // It came to its end while the answer was on its way.
      if (!this.over.has(approval.id)) this.put(approval);
    }
    for (const id of before) this.all.delete(id);
    this.known = true;
  }
}

export const approvals = new Approvals();
