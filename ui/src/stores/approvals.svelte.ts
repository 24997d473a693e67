/** The open approvals, the most urgent first, kept up to date by the live stream, and those that were resolved while the page was open. */

import { SvelteMap } from 'svelte/reactivity';
import { compareApprovals } from '../pure/approvalOrder';
import type { Approval } from '../wire';
import { call } from './api';
import { clock } from './clock.svelte';
import { live } from './live.svelte';

/** How many resolved approvals are kept. */
const KEPT = 50;

class Approvals {
  /** The order in which approvals arrived, by id. */
  private numbers = new Map<string, number>();
  /** Resolved since the last refresh started. */
  private resolvedMeanwhile = new Set<string>();
  private all = new SvelteMap<string, Approval>();
  /** Resolved while the page was open, newest first. */
  resolved = $state.raw<Approval[]>([]);
  /** Whether the list was read from the hub at least once. */
  loaded = $state(false);

  /** The time for the order, in steps: the list is not sorted again every second. */
  private now = $derived(Math.floor(clock.now / 15) * 15);
  open = $derived([...this.all.values()].sort((a, b) => compareApprovals(a, b, (id) => this.number(id), this.now)));

  constructor() {
    live.listen({
      connected: () => void this.refresh(),
      approval: (_, approval) => this.update(approval),
    });
  }

  /** The position of an approval in the order of arrival. */
  number(id: string): number {
    return this.numbers.get(id) ?? 0;
  }

  get(id: string): Approval | undefined {
    return this.all.get(id);
  }

  /** Takes over the latest state of an approval. */
  update(approval: Approval): void {
    if (approval.status === 'pending') {
      this.put(approval);
      return;
    }
    this.resolvedMeanwhile.add(approval.id);
    const others = this.resolved.filter((one) => one.id !== approval.id);
    if (this.all.delete(approval.id) || others.length < this.resolved.length)
      this.resolved = [approval, ...others].slice(0, KEPT);
  }

  private put(approval: Approval): void {
    if (!this.numbers.has(approval.id)) this.numbers.set(approval.id, this.numbers.size + 1);
    this.all.set(approval.id, approval);
  }

  /** Reads all open approvals. Approvals that are no longer listed were resolved while the page was disconnected. */
  private async refresh(): Promise<void> {
    // eslint-disable-next-line svelte/prefer-svelte-reactivity -- nothing on the page reads it
    const before = new Set(this.all.keys());
    this.resolvedMeanwhile.clear();
    let open: Approval[];
    try {
      open = (await call('loopback.pending')).approvals;
    } catch {
      return; // The stream fails as well, and reconnects.
    }
    for (const approval of open) {
      before.delete(approval.id);
      // It may have been resolved while the response was on its way.
      if (!this.resolvedMeanwhile.has(approval.id)) this.put(approval);
    }
    for (const id of before) this.all.delete(id);
    this.loaded = true;
  }
}

export const approvals = new Approvals();
