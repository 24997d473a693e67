import { expect, test } from 'vitest';
import { Conversation, type Node } from './conversation';

const node = (id: string, parent: string | null, role: Node['role'], session?: string, turn?: number): Node => ({
  id,
  ...(parent === null ? {} : { parent_id: parent }),
  role,
  ...(session === undefined ? {} : { session_id: session, turn: turn ?? 1 }),
  preview: `${role} ${id}`,
  created_at: 0,
});

/** a has turns 1 to 3; b forked after turn 1 of a and has two turns; c forked after turn 1 of b and has none. */
const nodes = [
  node('r', null, 'root'),
  node('u1', 'r', 'user', 'a', 1),
  node('a1', 'u1', 'assistant', 'a', 1),
  node('o1', 'a1', 'outcome', 'a', 1),
  node('u2', 'o1', 'user', 'a', 2),
  node('o2', 'u2', 'outcome', 'a', 2),
  node('x1', 'o1', 'user', 'b', 1),
  node('y1', 'x1', 'outcome', 'b', 1),
  node('u3', 'o2', 'user', 'a', 3),
  node('x2', 'y1', 'user', 'b', 2),
];
const speakers = [
  { id: 'a', name: 'a', head: 'u3' },
  { id: 'b', name: 'b', head: 'x2' },
  { id: 'c', name: 'c', head: 'y1' },
];

test('each turn is a row, and a fork is to the right of the continuation', () => {
  const conversation = new Conversation();
  conversation.add(nodes);
  const rows = conversation.rows(speakers);
  expect(rows.map((row) => `${' '.repeat(row.lane)}${row.turn.session ?? 'root'}${row.turn.turn}`)).toEqual([
    'root0',
    'a1',
    ' b1',
    ' b2',
    'a2',
    'a3',
  ]);
  expect(rows.map((row) => row.heads.map((head) => head.name).join())).toEqual(['', '', 'c', 'b', '', 'a']);
  expect(rows[2]).toMatchObject({ through: [true], above: false, below: true });
  expect(rows[1]?.turn).toMatchObject({ prompt: 'user u1', said: 'assistant a1', outcome: 'outcome o1', nodes: 3 });
  expect(rows[5]?.turn.outcome).toBe(null);
});

test('the rows do not depend on the pages, or on repeated nodes', () => {
  const whole = new Conversation();
  whole.add(nodes);
  const pages = new Conversation();
  for (let at = 0; at < nodes.length; at += 2) pages.add(nodes.slice(at, at + 3));
  expect(pages.rows(speakers)).toEqual(whole.rows(speakers));
  expect(pages.count).toBe(nodes.length);
});

test('a conversation of 20,000 turns works', () => {
  const long = new Conversation();
  long.add([node('r', null, 'root')]);
  for (let at = 1; at <= 20_000; at += 1) long.add([node(`n${at}`, at === 1 ? 'r' : `n${at - 1}`, 'user', 's', at)]);
  expect(long.rows([]).at(-1)).toMatchObject({ lane: 0, through: [] });
});
