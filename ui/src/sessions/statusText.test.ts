import { expect, test } from 'vitest';
import { hasTurn, sessionState, needsAttention } from './statusText';

test('what keeps a session from going on is said before how it stands', () => {
  expect(sessionState({ status: 'running', attention: ['stalled'] })).toEqual({
    words: 'stalled: nothing heard from the model',
    tone: 'trouble',
  });
  expect(sessionState({ status: 'awaiting_permission', attention: ['api_retry', 'plan'] }).tone).toBe('asks');
  expect(sessionState({ status: 'complete' })).toEqual({ words: 'done', tone: 'rests' });
});

test('what asks, is stuck or failed wants somebody to look', () => {
  expect(needsAttention({ status: 'failed' })).toBe(true);
  expect(needsAttention({ status: 'running', attention: ['rate_limited'] })).toBe(true);
  expect(needsAttention({ status: 'running' })).toBe(false);
  expect(needsAttention({ status: 'interrupted' })).toBe(false);
});

test('a turn in progress is one that works or waits', () => {
  expect(
    (['running', 'awaiting_permission', 'complete', 'idle'] as const).map((status) => hasTurn({ status })),
  ).toEqual([true, true, false, false]);
});
