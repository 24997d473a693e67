import { expect, test } from 'vitest';
import type { AuditEntry, AuditRow, SessionView } from '../wire';
import { entryStatus, entrySummary, editedInput, listParams, mergeNewer, type FilterForm } from './auditLog';

const sessions = [{ id: 'id-1', name: 'lead' }] as SessionView[];
const none: FilterForm = { session: '', kind: '', by: '', tool: '', since: '', until: '' };

test('an empty form filters nothing', () => {
  expect(listParams(none, sessions)).toEqual({});
});

test('a session may be given by name, and times are local', () => {
  expect(listParams({ ...none, session: 'lead', by: 'lead', tool: ' Bash ', kind: 'gate' }, sessions)).toEqual({
    session_id: 'id-1',
    by: 'session:id-1',
    tool_name: 'Bash',
    kind: 'gate',
  });
  expect(listParams({ ...none, session: 'gone-id', by: 'operator' }, sessions)).toEqual({
    session_id: 'gone-id',
    by: 'operator',
  });
  const { since } = listParams({ ...none, since: '2026-01-02T03:04', until: 'odd' }, sessions);
  expect(since).toBe(new Date(2026, 0, 2, 3, 4).getTime() / 1000);
});

test('newer rows are added at the top, each once', () => {
  const row = (number: number) => ({ number }) as AuditRow;
  expect(mergeNewer([row(5), row(4)], [row(7), row(6), row(5)], false)?.map((one) => one.number)).toEqual([7, 6, 5, 4]);
  expect(mergeNewer([row(5)], [row(9), row(8)], false), 'rows in between are missing').toBe(null);
  expect(mergeNewer([], [row(2), row(1)], true)?.length).toBe(2);
  expect(mergeNewer([row(5)], [], true)?.length).toBe(1);
});

test('an entry has a summary in one line', () => {
  const entry = { at: 0, status: 'made', by: { kind: 'operator' } } as unknown as AuditEntry;
  expect(entrySummary({ ...entry, kind: 'decision', input: { command: 'ls' } })).toBe('ls');
  expect(
    entrySummary({ ...entry, kind: 'policy', detail: { number: 3, rule: { rule: 'Bash(ls)', effect: 'allow' } } }),
  ).toBe('allow Bash(ls)');
  expect(entrySummary({ ...entry, kind: 'policy', detail: { number: 3 } })).toBe('no. 3');
  expect(entrySummary({ ...entry, kind: 'session', detail: { mode: 'plan' } })).toBe('plan');
  expect(entrySummary({ ...entry, kind: 'session' })).toBe('');
});

test('the summary of an edited call shows the input that ran', () => {
  const entry = { tool_name: 'Bash', input: { command: 'rm -r x' }, updated_input: { command: 'ls x' } };
  expect(entrySummary(entry as never)).toBe('ls x');
  expect(editedInput(entry)).toEqual({ command: 'ls x' });
  expect(editedInput({ ...entry, updated_input: entry.input })).toBeNull();
});

test('the status is readable', () => {
  expect(['made', 'set_budget', 'allowed'].map((status) => entryStatus({ status }))).toEqual([
    'created',
    'set budget',
    'allowed',
  ]);
});

test('the words of the log select its entries', () => {
  const by = (typed: string) =>
    listParams({ ...none, by: typed }, [{ id: 'id-2', name: 'hub' } as SessionView, ...sessions]).by;
  expect(by('you')).toBe('operator');
  expect(by('the hub')).toBe('hub');
  expect(by('hub')).toBe('hub');
  expect(by('session hub')).toBe('session:id-2');
  expect(by('session lead')).toBe('session:id-1');
  expect(by('token ci')).toBe('token:ci');
  expect(by('external agent boss')).toBe('parent:boss');
});
