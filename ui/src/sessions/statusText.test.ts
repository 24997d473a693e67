import { expect, test } from 'vitest';
import type { SessionView } from '../wire';
import { costSoFar, hasTurn, sessionState, needsAttention, treeCostSoFar } from './statusText';

test('what blocks a session takes precedence over its status', () => {
  expect(sessionState({ status: 'running', attention: ['stalled'] })).toEqual({
    text: 'stalled: no response from the model',
    tone: 'trouble',
  });
  expect(sessionState({ status: 'awaiting_permission', attention: ['api_retry', 'plan'] }).tone).toBe('asks');
  expect(sessionState({ status: 'complete' })).toEqual({ text: 'complete', tone: 'rests' });
});

test('a session that asks, is stuck or failed needs attention', () => {
  expect(needsAttention({ status: 'failed' })).toBe(true);
  expect(needsAttention({ status: 'running', attention: ['rate_limited'] })).toBe(true);
  expect(needsAttention({ status: 'running' })).toBe(false);
  expect(needsAttention({ status: 'interrupted' })).toBe(false);
});

test('a turn runs while the session is running or waiting', () => {
  expect(
    (['running', 'awaiting_permission', 'complete', 'idle'] as const).map((status) => hasTurn({ status })),
  ).toEqual([true, true, false, false]);
});

test('the cost includes the turns in progress', () => {
  const session = (id: string, parent: string | null, turn?: number) =>
    ({
      id,
      answers_to: parent === null ? { kind: 'operator' } : { kind: 'session', id: parent },
      cost_usd: 1,
      tree: { cost_usd: 3 },
      ...(turn === undefined ? {} : { turn_cost_usd: turn }),
    }) as SessionView;
  const all = [
    session('a', null, 0.5),
    session('b', 'a', 0.25),
    session('c', 'b', 0.125),
    session('d', 'a'),
    session('e', null, 8),
  ];
  expect(all.map(costSoFar)).toEqual([1.5, 1.25, 1.125, 1, 9]);
  expect(treeCostSoFar(all[0]!, all)).toBe(3.875);
  expect(treeCostSoFar(all[3]!, all)).toBe(3);
});
