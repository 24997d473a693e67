import { expect, test } from 'vitest';
import type { SessionView } from '../wire';
import { apart, rows, needingAttention } from './sessionTree';

const session = (id: string, parent: string | null, more: Partial<SessionView> = {}): SessionView =>
  ({
    id,
    name: `name-${id}`,
    status: 'running',
    pending_approvals: 0,
    created_at: 0,
    answers_to: parent === null ? { kind: 'operator' } : { kind: 'session', id: parent },
    ...more,
  }) as SessionView;

const all = [
  session('a', null),
  session('b', 'a'),
  session('c', 'b', { status: 'failed' }),
  session('d', 'a'),
  session('e', null),
  session('f', 'gone'),
];
const none = { letters: '', attention: false, folded: new Set<string>() };
const shape = (list: ReturnType<typeof rows>) => list.map((row) => `${'-'.repeat(row.level)}${row.session.id}`);

test('children are below their parent, and a session without a visible parent is at the top', () => {
  const list = rows(all, none);
  expect(shape(list)).toEqual(['-a', '--b', '---c', '--d', '-e', '-f']);
  expect(list.map((row) => [row.place, row.siblings])).toEqual([
    [1, 3],
    [1, 2],
    [1, 1],
    [2, 2],
    [2, 3],
    [3, 3],
  ]);
  expect(list.map((row) => row.open)).toEqual([true, true, undefined, undefined, undefined, undefined]);
});

test('a collapsed session hides its descendants, unless there is a filter', () => {
  const folded = new Set(['b']);
  expect(shape(rows(all, { ...none, folded }))).toEqual(['-a', '--b', '--d', '-e', '-f']);
  expect(shape(rows(all, { letters: 'E-C', attention: false, folded }))).toEqual(['-a', '--b', '---c']);
});

test('a match is shown with its ancestors', () => {
  const list = rows(all, { ...none, attention: true });
  expect(list.map((row) => [row.session.id, row.faint])).toEqual([
    ['a', true],
    ['b', true],
    ['c', false],
  ]);
});

test('open approvals come before other problems', () => {
  const asking = session('x', null, { status: 'awaiting_permission', pending_approvals: 2, created_at: 9 });
  expect(needingAttention([...all, asking]).map((one) => one.id)).toEqual(['x', 'c']);
});

test('a chain of 20,000 sessions works', () => {
  const deep = Array.from({ length: 20_000 }, (_, at) => session(String(at), at === 0 ? null : String(at - 1)));
  expect(rows(deep, none).at(-1)?.level).toBe(20_000);
  expect(rows(deep, { ...none, letters: 'name-19999' })).toHaveLength(20_000);
});

test('a tree is finished when all its sessions are', () => {
  const over = { status: 'complete' } as const;
  const list = [
    session('a', null, over),
    session('b', 'a'),
    session('c', null, over),
    session('d', 'c', { status: 'interrupted' }),
    session('e', null, { status: 'failed', pending_approvals: 1 }),
    session('f', 'gone', over),
  ];
  const { active, finished } = apart(list);
  expect([active, finished].map((some) => some.map(({ id }) => id).join(''))).toEqual(['abe', 'cdf']);
});
