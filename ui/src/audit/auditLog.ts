/** The audit log in the page: filters from the form, pages merged newest first, and summaries of entries. */

import { plain } from '../pure/fields';
import { answersIn, inputChanges } from '../pure/inputChanges';
import { oneLine, inputSummary } from '../sessions/toolCall';
import type { AuditEntry, AuditKind, AuditRow, Fields, Params, SessionView } from '../wire';

export const KINDS: readonly AuditKind[] = ['decision', 'gate', 'host', 'policy', 'session', 'template', 'token'];

export interface FilterForm {
  session: string;
  kind: AuditKind | '';
  by: string;
  tool: string;
  /** Values of `<input type="datetime-local">`. */
  since: string;
  until: string;
}

/** The names of the filters, also in the address. */
export const FILTERS = ['session', 'kind', 'by', 'tool', 'since', 'until'] as const satisfies (keyof FilterForm)[];

/** The parameters of `audit.list`. A session may be given by its name. */
export function listParams(typed: FilterForm, sessions: readonly SessionView[]): Params<'audit.list'> {
  const params: Params<'audit.list'> = {};
  const session = typed.session.trim();
  if (session !== '') params.session_id = sessions.find((one) => one.name === session)?.id ?? session;
  if (typed.kind !== '') params.kind = typed.kind;
  const by = typed.by.trim();
  if (by !== '') params.by = deciderKey(by, sessions);
  if (typed.tool.trim() !== '') params.tool_name = typed.tool.trim();
  for (const name of ['since', 'until'] as const) {
    const at = Date.parse(typed[name]) / 1000;
    if (Number.isFinite(at)) params[name] = at;
  }
  return params;
}

/** The key of a decider in the log, from the words that the log shows. */
function deciderKey(by: string, sessions: readonly SessionView[]): string {
  if (by === 'you' || by === 'operator' || by === 'the operator') return 'operator';
  if (by === 'hub' || by === 'the hub') return 'hub';
  const name = by.replace(/^session[ :]/, '');
  const named = sessions.find((one) => one.name === name || one.path === name);
  return named ? `session:${named.id}` : by.replace(/^token /, 'token:').replace(/^external agent /, 'parent:');
}

/**
 * Adds the newer rows of a page, each once. Returns `null` if the page does not reach the known rows, so that rows in between are
 * missing.
 */
export function mergeNewer(rows: readonly AuditRow[], page: readonly AuditRow[], whole: boolean): AuditRow[] | null {
  const top = rows[0]?.number ?? 0;
  const later = page.filter((row) => row.number > top);
  if (later.length === page.length && later.length > 0 && !whole) return null;
  return [...later, ...rows];
}

/** The input that ran, if it differs from the requested one. The answers to a question are not a change. */
export function editedInput(entry: Pick<AuditEntry, 'tool_name' | 'input' | 'updated_input'>): Fields | null {
  const { tool_name = '', input = {}, updated_input: ran } = entry;
  return ran === undefined || inputChanges(input, ran).length === 0 || answersIn(tool_name, input, ran) !== null
    ? null
    : ran;
}

/** An entry in one line: the input that ran, the rule, or the setting. */
export function entrySummary(entry: AuditEntry): string {
  const { detail = {} } = entry;
  const rule = detail['rule'];
  if (entry.input !== undefined) return inputSummary(editedInput(entry) ?? entry.input);
  if (rule !== null && typeof rule === 'object' && !Array.isArray(rule))
    return oneLine(`${plain(rule['effect'])} ${plain(rule['rule'])}`);
  if (typeof detail['number'] === 'number') return `no. ${detail['number']}`;
  return inputSummary(detail);
}

/** The colour of an entry. */
export function entryTone(entry: AuditEntry): 'good' | 'bad' | 'soft' {
  if (['allowed', 'allow'].includes(entry.status)) return 'good';
  if (['denied', 'deny', 'expired'].includes(entry.status)) return 'bad';
  return 'soft';
}

/** The status of an entry as text. The wire says `made` for a created rule, token or session. */
export function entryStatus({ status }: Pick<AuditEntry, 'status'>): string {
  return status === 'made' ? 'created' : status.replaceAll('_', ' ');
}
