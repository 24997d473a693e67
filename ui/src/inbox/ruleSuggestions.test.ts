import { expect, test } from 'vitest';
import type { Fields } from '../wire';
import { characterAt, rulesFor } from './ruleSuggestions';

/** The rule that is filled in, then the others. */
const of = (tool_name: string, input: Fields, suggestions: Fields[] = []) => {
  const { first, others } = rulesFor({ tool_name, input, suggestions });
  return [first, ...others];
};

test("Claude Code's own suggestion comes first", () => {
  const suggestions: Fields[] = [
    { type: 'setMode', mode: 'acceptEdits' },
    {
      type: 'addRules',
      behavior: 'allow',
      rules: [{ toolName: 'Bash', ruleContent: 'touch:*' }, { toolName: 'Read' }],
    },
    { type: 'addRules', behavior: 'deny', rules: [{ toolName: 'Bash' }] },
  ];
  expect(of('Bash', { command: 'touch a' }, suggestions)).toEqual(['Bash(touch:*)', 'Read', 'Bash(touch a)']);
  expect(of('Monitor', { command: 'touch a' }, suggestions)).toEqual(['Read', 'Monitor(touch a)', 'Monitor(touch:*)']);
  expect(of('PowerShell', { command: 'ls' })).toEqual(['']);
});

test('then just this command, then those like it', () => {
  expect(of('Bash', { command: 'npm run test -- --watch' })).toEqual([
    'Bash(npm run test -- --watch)',
    'Bash(npm run test:*)',
    'Bash(npm run test -- --watch:*)',
  ]);
  expect(of('Bash', { command: 'ls -la /tmp' })).toEqual(['Bash(ls -la /tmp)', 'Bash(ls:*)', 'Bash(ls -la:*)']);
});

test('what means something in a rule is not written by us, and a wider one is never filled in', () => {
  expect(of('Bash', { command: 'rm *' })).toEqual(['', 'Bash(rm:*)']);
  expect(of('Bash', { command: 'FOO=1 make' })).toEqual(['Bash(FOO=1 make)']);
  expect(of('Bash', { command: '$(evil)' })).toEqual(['']);
  expect(of('Bash', { command: 'ls && rm a' })).toEqual(['', 'Bash(ls:*)']);
  expect(of('evil) *', {})).toEqual(['']);
});

test('a file is named from the root', () => {
  expect(of('Write', { file_path: '/a/b.md' })).toEqual(['Edit(//a/b.md)', 'Edit(//a/**)']);
  expect(of('Read', { file_path: 'b.md' })).toEqual(['Read(b.md)']);
});

test('the web by host, agents by name, other tools by theirs', () => {
  expect(of('WebFetch', { url: 'https://example.com/x?y' })).toEqual(['WebFetch(domain:example.com)']);
  expect(of('Task', { subagent_type: 'reviewer' })).toEqual(['Task(reviewer)']);
  expect(of('mcp__github__get', {})).toEqual(['mcp__github__get']);
});

test('the place of a fault is found in characters', () => {
  expect(characterAt('Bash(ä', 7)).toBe(6);
  expect(characterAt('x', 0)).toBe(0);
});
