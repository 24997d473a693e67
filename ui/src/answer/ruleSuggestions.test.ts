import { expect, test } from 'vitest';
import type { Fields } from '../wire';
import { characterAt, rulesFor, matchesBesides } from './ruleSuggestions';

/** The rule that is filled in, then the further suggestions. */
const of = (tool_name: string, input: Fields, suggestions: Fields[] = []) => {
  const { first, others } = rulesFor({ tool_name, input, suggestions });
  return [first, ...others];
};

test("Claude Code's suggestion comes first", () => {
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

test('then a rule for this command, then rules for similar ones', () => {
  expect(of('Bash', { command: 'npm run test -- --watch' })).toEqual([
    'Bash(npm run test -- --watch)',
    'Bash(npm run test:*)',
    'Bash(npm run test -- --watch:*)',
  ]);
  expect(of('Bash', { command: 'ls -la /tmp' })).toEqual(['Bash(ls -la /tmp)', 'Bash(ls:*)', 'Bash(ls -la:*)']);
});

test('a command with special characters has no exact rule, and a wider rule is never filled in', () => {
  expect(of('Bash', { command: 'rm *' })).toEqual(['', 'Bash(rm:*)']);
  expect(of('Bash', { command: 'FOO=1 make' })).toEqual(['Bash(FOO=1 make)']);
  expect(of('Bash', { command: '$(evil)' })).toEqual(['']);
  expect(of('Bash', { command: 'ls && rm a' })).toEqual(['', 'Bash(ls:*)']);
  expect(of('evil) *', {})).toEqual(['']);
});

test('a file rule is absolute', () => {
  expect(of('Write', { file_path: '/a/b.md' })).toEqual(['Edit(//a/b.md)', 'Edit(//a/**)']);
  expect(of('Read', { file_path: 'b.md' })).toEqual(['Read(b.md)']);
});

test('web rules name the host, agent rules the agent, other rules the tool', () => {
  expect(of('WebFetch', { url: 'https://example.com/x?y' })).toEqual(['WebFetch(domain:example.com)']);
  expect(of('Task', { subagent_type: 'reviewer' })).toEqual(['Task(reviewer)']);
  expect(of('mcp__github__get', {})).toEqual(['mcp__github__get']);
});

test('a byte offset becomes a character index', () => {
  expect(characterAt('Bash(ä', 7)).toBe(6);
  expect(characterAt('x', 0)).toBe(0);
});

test('a rule says what else it matches', () => {
  for (const rule of ['Bash', 'Bash(*)', 'Bash(:*)', 'Edit(**)', 'Edit(//**)', ' Bash '])
    expect(matchesBesides(rule)).toMatch(/^every call of (Bash|Edit), whatever its input$/);
  expect(matchesBesides('mcp__files__write')).toBe('every call of mcp__files__write, whatever its input');
  expect(matchesBesides('mcp__my_files')).toBe('every call of every tool of my_files');
  expect(matchesBesides('mcp__files__*')).toBe('every call of every tool of files');
  expect(matchesBesides('Bash(npm test:*)')).toBe('every command that starts with npm test');
  expect(matchesBesides('Edit(//work/src/**)')).toBe('every file below //work/src');
  expect(matchesBesides('WebFetch(domain:a.example)')).toBe('every page of a.example');
  expect(matchesBesides('Bash(git * main)')).toBe('every call that fits the pattern');
  expect(matchesBesides('Bash(npm test)')).toBeNull();
  expect(matchesBesides('Edit(//work/a.ts)')).toBeNull();
});
