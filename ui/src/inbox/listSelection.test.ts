import { expect, test } from 'vitest';
import type { Approval } from '../wire';
import { filtered, nextOpen, stepped } from './listSelection';

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
const list = [one('a', 1), one('b', 2), one('d', 4)];

test('every word of the filter must occur', () => {
  const open = [
    ...list,
    one('e', 5, {
      session_name: 'Deploy',
      session_path: 'lead/Deploy',
      tool_name: 'Write',
      input: { file_path: '/etc/x' },
    }),
  ];
  const ids = (words: string) => filtered(open, words).map((approval) => approval.id);
  expect(ids('')).toEqual(['a', 'b', 'd', 'e']);
  expect(ids('deploy /etc')).toEqual(['e']);
  expect(ids('bash ECHO')).toEqual(['a', 'b', 'd']);
  expect(ids('lead')).toEqual(['e']);
  expect(ids('nowhere')).toEqual([]);
});

test('the selection moves along the list and stops at its ends', () => {
  expect([
    stepped(list, null, 1),
    stepped(list, 'a', 1),
    stepped(list, 'd', 1),
    stepped(list, 'a', -1),
    stepped([], null, 1),
  ]).toEqual(['a', 'b', 'd', 'a', null]);
});

test('from a resolved approval, the selection moves on from its position', () => {
  const earlier = ['a', 'b', 'c', 'd'];
  expect([stepped(list, 'c', 1, earlier), stepped(list, 'c', -1, earlier)]).toEqual(['d', 'b']);
  expect([stepped(list.slice(0, 2), 'c', 1, earlier), stepped(list.slice(2), 'c', -1, earlier)]).toEqual(['b', 'd']);
  expect(stepped(list, 'unknown', 1, earlier)).toBe('d');
});

test('after an answer the next approval is selected, or else the last one', () => {
  expect([nextOpen(list, 'a'), nextOpen(list, 'd'), nextOpen([list[0]!], 'a')]).toEqual(['b', 'b', null]);
});
