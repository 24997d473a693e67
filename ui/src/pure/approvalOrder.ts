/** The order of open approvals: oldest first; approvals of the same second in their order of arrival. */

import type { Approval } from '../wire';

export type Ordered = Pick<Approval, 'id' | 'created_at'>;
/** The number of an approval in the order of arrival. */
export type ArrivalNumber = (id: string) => number;

/** A comparator for `sort`. */
export function compareApprovals(a: Ordered, b: Ordered, number: ArrivalNumber): number {
  return a.created_at - b.created_at || number(a.id) - number(b.id);
}
