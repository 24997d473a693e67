import { expect, test } from 'vitest';
import { announcement, confirmation, tooLate } from './confirmation';

const bash = { tool_name: 'Bash', input: { command: 'npm test' }, kind: 'tool', session_name: 'fix' } as const;

test('the confirmation names the call and the answer', () => {
  expect(confirmation(bash, { approve: true }, 0)).toBe('Allowed: Run npm test (fix)');
  expect(confirmation(bash, { approve: false, message: 'not now', interrupt: true }, 0)).toBe(
    'Denied: Run npm test (fix), and stopped the agent. Reason: not now',
  );
  expect(confirmation(bash, { approve: true, updated_input: { command: 'npm run lint' } }, 0)).toBe(
    'Allowed with changes: Run npm run lint (fix)',
  );
  expect(confirmation(bash, { approve: true, remember: { rule: 'Bash(npm test:*)' } }, 2)).toBe(
    'Allowed: Run npm test (fix). Rule added: Bash(npm test:*); it resolved 2 more',
  );
});

test('plans and budget requests have their own confirmation', () => {
  expect(confirmation({ ...bash, kind: 'plan' }, { approve: true }, 0)).toBe('Allowed: plan (fix)');
  expect(
    confirmation(
      { ...bash, kind: 'budget', input: { limit: 'turns' } },
      { approve: true, updated_input: { more: 5 } },
      0,
    ),
  ).toBe('Granted: budget request (turns) (fix)');
});

test('the confirmation of an answer says what was answered', () => {
  const questions = [{ question: 'Which colour?', header: 'H', multiSelect: false, options: [] }];
  const asked = { ...bash, tool_name: 'AskUserQuestion', kind: 'question', input: { questions } } as const;
  const answers = { 'Which colour?': 'Red', 'Which size?': 'Large' };
  expect(confirmation(asked, { approve: true, answers }, 0)).toMatch(/^Answered: .* \(fix\)\. Answers: Red; Large$/);
});

test('an answer that waits is announced, not reported as done', () => {
  expect(announcement(bash, { approve: true })).toBe('Allowing: Run npm test (fix)');
  expect(announcement(bash, { approve: false, message: 'no' })).toBe('Denying: Run npm test (fix). Reason: no');
});

test('a long input is truncated', () => {
  expect(confirmation({ ...bash, input: { command: 'x'.repeat(300) } }, { approve: true }, 0)).toMatch(
    /^Allowed: Run x{156}… \(fix\)$/,
  );
});

test('a late answer names who answered first', () => {
  expect(
    tooLate('denied', { approve: false, by: { kind: 'token', name: 'ada' }, right: 'token' }, () => 'token ada'),
  ).toBe('Your answer came too late. The approval was already denied by token ada.');
});
