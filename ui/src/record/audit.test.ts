import { expect, test } from 'vitest';
import type { AuditEntry, AuditRow, SessionView } from '../wire';
import { about, edited, filters, newer, type Typed } from './audit';

const sessions = [{ id: 'id-1', name: 'lead' }] as SessionView[];
const none: Typed = { session: '', kind: '', by: '', tool: '', since: '', until: '' };

test('nothing typed filters nothing', () => {
  expect(filters(none, sessions)).toEqual({});
});

test('sessions may be named, and times are the clock of the viewer', () => {
  expect(filters({ ...none, session: 'lead', by: 'lead', tool: ' Bash ', kind: 'gate' }, sessions)).toEqual({
    session_id: 'id-1',
    by: 'session:id-1',
    tool_name: 'Bash',
    kind: 'gate',
  });
  expect(filters({ ...none, session: 'gone-id', by: 'operator' }, sessions)).toEqual({
    session_id: 'gone-id',
    by: 'operator',
  });
  const { since } = filters({ ...none, since: '2026-01-02T03:04', until: 'odd' }, sessions);
  expect(since).toBe(new Date(2026, 0, 2, 3, 4).getTime() / 1000);
});

test('what came later is put before the rest, each once', () => {
  const row = (number: number) => ({ number }) as AuditRow;
  expect(newer([row(5), row(4)], [row(7), row(6), row(5)], false)?.map((one) => one.number)).toEqual([7, 6, 5, 4]);
  expect(newer([row(5)], [row(9), row(8)], false), 'something between them is missing').toBe(null);
  expect(newer([], [row(2), row(1)], true)?.length).toBe(2);
  expect(newer([row(5)], [], true)?.length).toBe(1);
});

test('an act says in one line what it was about', () => {
  const entry = { at: 0, status: 'made', by: { kind: 'operator' } } as unknown as AuditEntry;
  expect(about({ ...entry, kind: 'decision', input: { command: 'ls' } })).toBe('ls');
  expect(about({ ...entry, kind: 'policy', detail: { number: 3, rule: { rule: 'Bash(ls)', effect: 'allow' } } })).toBe(
    'allow Bash(ls)',
  );
  expect(about({ ...entry, kind: 'policy', detail: { number: 3 } })).toBe('no. 3');
  expect(about({ ...entry, kind: 'session', detail: { mode: 'plan' } })).toBe('plan');
  expect(about({ ...entry, kind: 'session' })).toBe('');
});

test('of an edited call, what ran is told', () => {
  const entry = { tool_name: 'Bash', input: { command: 'rm -r x' }, updated_input: { command: 'ls x' } };
  expect(about(entry as never)).toBe('ls x');
  expect(edited(entry)).toEqual({ command: 'ls x' });
  expect(edited({ ...entry, updated_input: entry.input })).toBeNull();
});
