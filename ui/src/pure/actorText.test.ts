import { expect, test } from 'vitest';
import { actorText } from './actorText';

test('a session has its name, or the beginning of its id', () => {
  expect(actorText({ kind: 'session', id: '12345678-9' }, () => 'lead')).toBe('lead');
  expect(actorText({ kind: 'session', id: '12345678-9' }, () => undefined)).toBe('session 12345678');
});

test('the operator is "you", except to a viewer who is not the operator', () => {
  expect(actorText({ kind: 'operator' }, () => undefined)).toBe('you');
  expect(actorText({ kind: 'operator' }, () => undefined, 'the operator')).toBe('the operator');
});
