import { expect, test } from 'vitest';
import { hasTurn, sessionState, needsAttention } from './statusText';

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
