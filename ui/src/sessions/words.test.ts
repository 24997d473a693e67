import { expect, test } from 'vitest';
import { busy, state, wants, who } from './words';

test('what keeps a session from going on is said before how it stands', () => {
  expect(state({ status: 'running', attention: ['stalled'] })).toEqual({
    words: 'stalled: nothing heard from the model',
    tone: 'trouble',
  });
  expect(state({ status: 'awaiting_permission', attention: ['api_retry', 'plan'] }).tone).toBe('asks');
  expect(state({ status: 'complete' })).toEqual({ words: 'done', tone: 'rests' });
});

test('what asks, is stuck or failed wants somebody to look', () => {
  expect(wants({ status: 'failed' })).toBe(true);
  expect(wants({ status: 'running', attention: ['rate_limited'] })).toBe(true);
  expect(wants({ status: 'running' })).toBe(false);
  expect(wants({ status: 'interrupted' })).toBe(false);
});

test('a turn in progress is one that works or waits', () => {
  expect((['running', 'awaiting_permission', 'complete', 'idle'] as const).map((status) => busy({ status }))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test('a session is called by its name where it is known', () => {
  expect(who({ kind: 'session', id: '12345678-9' }, () => 'lead')).toBe('lead');
  expect(who({ kind: 'session', id: '12345678-9' }, () => undefined)).toBe('session 12345678');
});
