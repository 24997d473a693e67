import { expect, test } from 'vitest';
import type { SessionView } from '../wire';
import { rows, needingAttention } from './sessionTree';

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

test('children stand below their parent, and one whose parent is not seen stands at the top', () => {
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

test('what is folded hides what is below it, unless something is looked for', () => {
  const folded = new Set(['b']);
  expect(shape(rows(all, { ...none, folded }))).toEqual(['-a', '--b', '--d', '-e', '-f']);
  expect(shape(rows(all, { letters: 'E-C', attention: false, folded }))).toEqual(['-a', '--b', '---c']);
});

test('what is found is shown with those above it', () => {
  const list = rows(all, { ...none, attention: true });
  expect(list.map((row) => [row.session.id, row.faint])).toEqual([
    ['a', true],
    ['b', true],
    ['c', false],
  ]);
});

test('who asks comes before who is stuck', () => {
  const asking = session('x', null, { status: 'awaiting_permission', pending_approvals: 2, created_at: 9 });
  expect(needingAttention([...all, asking]).map((one) => one.id)).toEqual(['x', 'c']);
});

test('a chain of thousands is no burden', () => {
  const deep = Array.from({ length: 20_000 }, (_, at) => session(String(at), at === 0 ? null : String(at - 1)));
  expect(rows(deep, none).at(-1)?.level).toBe(20_000);
  expect(rows(deep, { ...none, letters: 'name-19999' })).toHaveLength(20_000);
});
