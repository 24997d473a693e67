import { expect, test } from 'vitest';
import type { Approval } from '../wire';
import { filtered, nextOpen as next, stepped as step } from './listSelection';

const one = (id: string, created_at: number, more: object = {}) =>
  ({
    id,
    created_at,
    session_id: 's',
    session_name: 'worker',
    tool_name: 'Bash',
    kind: 'tool',
    input: { command: `echo ${id}` },
    ...more,
  }) as unknown as Approval;
const number = (id: string) => id.charCodeAt(0);
const stepped = (list: Approval[], from: Parameters<typeof step>[1], by: 1 | -1) => step(list, from, by, number);
const nextOpen = (list: Approval[], answered: Approval) => next(list, answered, number);
const list = [one('a', 1), one('b', 2), one('d', 4)];

test('every word of the filter must occur', () => {
  const open = [...list, one('e', 5, { session_name: 'Deploy', tool_name: 'Write', input: { file_path: '/etc/x' } })];
  const ids = (words: string, path?: (id: string) => string[]) =>
    filtered(open, words, path).map((approval) => approval.id);
  expect(ids('')).toEqual(['a', 'b', 'd', 'e']);
  expect(ids('deploy /etc')).toEqual(['e']);
  expect(ids('bash ECHO')).toEqual(['a', 'b', 'd']);
  expect(ids('root', () => ['root'])).toHaveLength(4);
  expect(ids('nowhere')).toEqual([]);
});

test('the selection moves along the list and stops at its ends', () => {
  expect([
    stepped(list, null, 1),
    stepped(list, list[0]!, 1),
    stepped(list, list[2]!, 1),
    stepped(list, list[0]!, -1),
    stepped([], null, 1),
  ]).toEqual(['a', 'b', 'd', 'a', null]);
});

test('from a resolved approval, the selection moves on from its position', () => {
  const gone = { id: 'c', created_at: 3 };
  expect([stepped(list, gone, 1), stepped(list, gone, -1)]).toEqual(['d', 'b']);
});

test('approvals of the same second keep their order of arrival', () => {
  const same = [one('a', 1), one('c', 1), one('d', 1)];
  expect(stepped(same, { id: 'b', created_at: 1 }, 1)).toBe('c');
});

test('after an answer the next approval is selected, or else the last one', () => {
  expect([nextOpen(list, list[0]!), nextOpen(list, list[2]!), nextOpen([list[0]!], list[0]!)]).toEqual([
    'b',
    'b',
    null,
  ]);
});
