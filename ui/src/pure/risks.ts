/** The names of the risk marks that the hub gives to calls. */

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
