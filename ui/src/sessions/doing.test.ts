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
    say('awaiting_permission', {
      type: 'approval',
      kind: 'tool',
      call: { tool_name: 'WebFetch', summary: 'https://a.example' },
      asked_of: { kind: 'operator' },
    }),
  ).toBe('waiting for you: Fetch https://a.example');
});
