/** The record as it is asked for and kept in the page: filters out of what was typed, pages put together, newest first. */

import { plain } from '../pure/fields';
import { answersIn, inputChanges } from '../pure/inputChanges';
import { oneLine, inputSummary } from '../sessions/toolCall';
import type { AuditEntry, AuditKind, AuditRow, Fields, Params, SessionView } from '../wire';

export const KINDS: readonly AuditKind[] = ['decision', 'gate', 'policy', 'session', 'token'];

export interface FilterForm {
  session: string;
  kind: AuditKind | '';
  by: string;
  tool: string;
  /** As `<input type="datetime-local">` gives them. */
  since: string;
  until: string;
}

/** The parameters of `audit.list`; a session may be typed by its name. */
export function listParams(typed: FilterForm, sessions: readonly SessionView[]): Params<'audit.list'> {
  const params: Params<'audit.list'> = {};
  const session = typed.session.trim();
  if (session !== '') params.session_id = sessions.find((one) => one.name === session)?.id ?? session;
  if (typed.kind !== '') params.kind = typed.kind;
  const by = typed.by.trim();
  if (by !== '') {
    const named = sessions.find((one) => one.name === by);
    params.by = named ? `session:${named.id}` : by;
  }
  if (typed.tool.trim() !== '') params.tool_name = typed.tool.trim();
  for (const name of ['since', 'until'] as const) {
    const at = Date.parse(typed[name]) / 1000;
    if (Number.isFinite(at)) params[name] = at;
  }
  return params;
}

/**
 * The newest rows before those that are there, each once; `null` where the page does not reach down to them, so that something
 * between is missing.
 */
export function mergeNewer(rows: readonly AuditRow[], page: readonly AuditRow[], whole: boolean): AuditRow[] | null {
  const top = rows[0]?.number ?? 0;
  const later = page.filter((row) => row.number > top);
  if (later.length === page.length && later.length > 0 && !whole) return null;
  return [...later, ...rows];
}

/** The input that ran, where it is another than the one that was requested; answers to questions are no change. */
export function editedInput(entry: Pick<AuditEntry, 'tool_name' | 'input' | 'updated_input'>): Fields | null {
  const { tool_name = '', input = {}, updated_input: ran } = entry;
  return ran === undefined || inputChanges(input, ran).length === 0 || answersIn(tool_name, input, ran) !== null
    ? null
    : ran;
}

/** What an act was about, in one line: the tool's input as it ran, the rule, what was set. */
export function entrySummary(entry: AuditEntry): string {
  const { detail = {} } = entry;
  const rule = detail['rule'];
  if (entry.input !== undefined) return inputSummary(editedInput(entry) ?? entry.input);
  if (rule !== null && typeof rule === 'object' && !Array.isArray(rule))
    return oneLine(`${plain(rule['effect'])} ${plain(rule['rule'])}`);
  if (typeof detail['number'] === 'number') return `no. ${detail['number']}`;
  return inputSummary(detail);
}

/** What was done, as a good or a bad sign. */
export function entryTone(entry: AuditEntry): 'good' | 'bad' | 'soft' {
  if (['allowed', 'allow'].includes(entry.status)) return 'good';
  if (['denied', 'deny', 'expired'].includes(entry.status)) return 'bad';
  return 'soft';
}
