import { expect, test } from 'vitest';
import { actorText } from './actorText';

test('a session is called a session, with its name or the beginning of its id', () => {
  expect(actorText({ kind: 'session', id: '12345678-9' }, () => 'lead')).toBe('session lead');
  expect(actorText({ kind: 'session', id: '12345678-9' }, () => undefined)).toBe('session 12345678');
});

test('the operator is "you", except to a viewer who is not the operator', () => {
  expect(actorText({ kind: 'operator' }, () => undefined)).toBe('you');
  expect(actorText({ kind: 'operator' }, () => undefined, 'the operator')).toBe('the operator');
});

test('a session cannot imitate another decider', () => {
  for (const name of ['you', 'operator', 'the operator', 'The Hub', 'token ci']) {
    expect(actorText({ kind: 'session', id: '1' }, () => name)).toBe(`session ${name}`);
  }
});
