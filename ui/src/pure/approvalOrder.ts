/** The order of open approvals: first those whose time runs out, then the oldest; approvals of the same second in their order of arrival. */

import type { Approval } from '../wire';

export type Ordered = Pick<Approval, 'id' | 'created_at' | 'expires_at' | 'passes_on_at'>;
/** The number of an approval in the order of arrival. */
export type ArrivalNumber = (id: string) => number;

/** An approval is urgent if it expires or escalates within this time, in seconds. */
export const URGENT = 600;

/** When an approval expires or escalates; Infinity if it does neither. */
export function deadline({ expires_at, passes_on_at }: Pick<Approval, 'expires_at' | 'passes_on_at'>): number {
  return Math.min(expires_at ?? Infinity, passes_on_at ?? Infinity);
}

/** A comparator for `sort`, at a time in seconds. */
export function compareApprovals(a: Ordered, b: Ordered, number: ArrivalNumber, now: number): number {
  const urgency = (one: Ordered) => (deadline(one) - now < URGENT ? deadline(one) : Number.MAX_SAFE_INTEGER);
  return urgency(a) - urgency(b) || a.created_at - b.created_at || number(a.id) - number(b.id);
}
