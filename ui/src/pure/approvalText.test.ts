import { expect, test } from 'vitest';
import { outcomeText, sessionLabel, sessionPath } from './approvalText';

test('the outcome names who answered', () => {
  const decision = { approve: false, by: { kind: 'token', name: 'phone' }, right: 'token' } as const;
  const name = () => 'token phone';
  expect(outcomeText({ status: 'denied', decision }, name)).toBe('Denied by token phone');
  expect(outcomeText({ status: 'denied', decision: { ...decision, interrupt: true } }, name)).toBe(
    'Denied and stopped by token phone',
  );
  const byRule = { approve: true, by: { kind: 'operator' }, right: 'rule', rule: 7 } as const;
  expect(outcomeText({ status: 'allowed', decision: byRule }, name)).toBe('Allowed by rule 7');
  expect(outcomeText({ status: 'expired' }, name)).toBe('Expired without an answer');
});

test('a session is named by its path, and by its host if there are several', () => {
  const approval = { session_path: 'lead/worker', session_name: 'worker' };
  expect(sessionLabel(approval)).toBe('lead/worker');
  const elsewhere = { ...approval, host: 'gpu-1' };
  expect(sessionLabel(elsewhere)).toBe('lead/worker on gpu-1');
  expect(sessionPath(elsewhere)).toBe('lead/worker');
  expect(sessionLabel({ session_name: 'worker' })).toBe('worker');
});
