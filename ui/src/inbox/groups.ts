/** The list of open approvals in groups: by project, or by the topmost session of their tree. */

import type { Approval } from '../wire';
import type { Grouping } from '../stores/preferences.svelte';

/** A row of the list. */
export type ListRow =
  { kind: 'group'; key: string; name: string; count: number } | { kind: 'approval'; key: string; approval: Approval };

export interface Names {
  project(approval: Approval): string;
  /** The names from the top of the tree down to the session. */
  path(approval: Approval): string[];
}

/** The rows, in the order of the approvals: a group stands where its first approval stands. */
export function groupRows(approvals: readonly Approval[], by: Grouping, names: Names): ListRow[] {
  const row = (approval: Approval): ListRow => ({ kind: 'approval', key: approval.id, approval });
  if (by === 'none') return approvals.map(row);
  const groups = new Map<string, Approval[]>();
  for (const approval of approvals) {
    const name = by === 'project' ? names.project(approval) : (names.path(approval)[0] ?? approval.session_name);
    const group = groups.get(name);
    if (group) group.push(approval);
    else groups.set(name, [approval]);
  }
  return [...groups].flatMap(([name, list]) => [
    { kind: 'group' as const, key: `group/${name}`, name, count: list.length },
    ...list.map(row),
  ]);
}

/** The approvals in the order in which the rows show them. */
export function shownOrder(rows: readonly ListRow[]): Approval[] {
  return rows.flatMap((row) => (row.kind === 'approval' ? [row.approval] : []));
}
