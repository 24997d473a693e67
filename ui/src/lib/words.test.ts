import { expect, test } from 'vitest';
import { ending, who } from './words';

test('it is said who answered', () => {
  const decision = { approve: false, by: { kind: 'token', name: 'phone' }, right: 'token' } as const;
  expect(ending({ status: 'denied', decision })).toBe('Denied by the token phone');
  expect(ending({ status: 'denied', decision: { ...decision, interrupt: true } })).toBe(
    'Denied and stopped by the token phone',
  );
  expect(
    ending({ status: 'allowed', decision: { approve: true, by: { kind: 'operator' }, right: 'rule', rule: 7 } }),
  ).toBe('Allowed by rule 7');
  expect(ending({ status: 'expired' })).toBe('Nobody answered in time');
});

test('a session is called by its name, where it is known', () => {
  expect(who({ kind: 'session', id: '0123456789' }, () => 'lead')).toBe('the session lead');
  expect(who({ kind: 'session', id: '0123456789' })).toBe('the session 01234567');
});
