import { expect, test } from 'vitest';
import type { SessionView } from '../wire';
import { doing } from './doing';

const say = (status: SessionView['status'], current_action?: SessionView['current_action']) =>
  doing({ status, working_dir: '/w', ...(current_action ? { current_action } : {}) }).text;

test('a session says what it does', () => {
  expect(say('complete')).toBe('complete');
  expect(say('running', { type: 'thinking' })).toBe('thinking');
  expect(say('running', { type: 'tools', calls: [{ tool_name: 'Bash', summary: 'npm test' }], more: 2 })).toBe(
    'Run npm test and 2 more',
  );
  expect(say('running', { type: 'tools', calls: [{ tool_name: 'Edit', summary: '/w/a.ts' }] })).toBe('Edit a.ts');
  expect(
    say('running', { type: 'tools', calls: [{ tool_name: 'mcp__tracker__create_issue', summary: 'a title' }] }),
  ).toBe('tracker: create issue: a title');
  expect(
    say('awaiting_permission', {
      type: 'approval',
      kind: 'tool',
      call: { tool_name: 'WebFetch', summary: 'https://a.example' },
      asked_of: { kind: 'operator' },
    }),
  ).toBe('waiting for you: Fetch https://a.example');
});

test('a person who is not the operator is not told to be asked', () => {
  const current_action = {
    type: 'approval',
    kind: 'tool',
    call: { tool_name: 'Bash', summary: 'ls' },
    asked_of: { kind: 'operator' },
  } as const;
  const session = { status: 'awaiting_permission', working_dir: '/w', current_action } as const;
  expect(doing(session, 'the operator').text).toBe('waiting for the operator: Run ls');
});
