/** The risk marks that the hub gives to calls: their names, their order, and which of them need a confirmation. */

import type { RiskKind } from '../wire';

export const RISKS: Record<RiskKind, string> = {
  denied_before: 'Denied before',
  unclear: 'Not fully analysed',
  runs_downloaded_code: 'Runs downloaded code',
  force_push: 'Force push',
  recursive_delete: 'Recursive delete',
  credentials: 'Credentials',
  privilege: 'Elevated privileges',
  system: 'Changes the system',
  publishes: 'Publishes',
  runs_later: 'Changes what runs later',
  history_rewrite: 'Rewrites history or discards changes',
  permissions: 'File permissions',
  outside_project: 'Outside the project',
  network: 'Network',
  other: 'Risk',
};

/** From the gravest to the least. */
const ORDER: readonly RiskKind[] = [
  'runs_downloaded_code',
  'force_push',
  'recursive_delete',
  'credentials',
  'privilege',
  'system',
  'publishes',
  'denied_before',
  'runs_later',
  'history_rewrite',
  'permissions',
  'outside_project',
  'unclear',
  'network',
  'other',
];

/** Marks of what cannot be undone, or hides what it does. */
const GRAVE: readonly RiskKind[] = [
  'denied_before',
  'unclear',
  'runs_downloaded_code',
  'force_push',
  'recursive_delete',
  'credentials',
  'privilege',
];

export function riskTone(kind: RiskKind): 'bad' | 'warn' {
  return GRAVE.includes(kind) ? 'bad' : 'warn';
}

/** The gravest mark first. Marks of one kind keep their order. */
export function byGravity<T extends { kind: RiskKind }>(risks: readonly T[]): T[] {
  return risks.toSorted((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
}

/** A call with one of these marks is allowed in two steps. */
const CONFIRMED: readonly RiskKind[] = ['runs_downloaded_code', 'force_push', 'credentials', 'privilege'];

/** The marks of a call that need a second step before it is allowed. A recursive delete needs it only outside the project. */
export function needsConfirmation(risks: readonly { kind: RiskKind }[]): RiskKind[] {
  const kinds = new Set(byGravity(risks).map((risk) => risk.kind));
  return [...kinds].filter(
    (kind) =>
      CONFIRMED.includes(kind) ||
      (kind === 'recursive_delete' && (kinds.has('outside_project') || kinds.has('unclear') || kinds.has('system'))),
  );
}
