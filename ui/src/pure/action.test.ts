import { describe, expect, it } from 'vitest';
import { actionOf, actionText, toolWords, type Called } from './action';

const cwd = '/home/ada/shop';
const say = (called: Called, file: Parameters<typeof actionOf>[1] = null) =>
  actionText(actionOf({ cwd, ...called }, file));

describe('the headline of a call', () => {
  it('says what a call does', () => {
    const cases: [string, Called][] = [
      ['Run git push --force', { tool_name: 'Bash', input: { command: 'git push --force' } }],
      ['Run a &&, +1 line', { tool_name: 'Bash', input: { command: 'a &&\n  b' } }],
      ['Run set -e, +95 lines', { tool_name: 'Bash', input: { command: `set -e\n\n${'true\n'.repeat(95)}` } }],
      [
        'Edit src/a.ts',
        { tool_name: 'Edit', input: { file_path: `${cwd}/src/a.ts`, old_string: 'a', new_string: 'b' } },
      ],
      ['Write /etc/hosts, 2 lines', { tool_name: 'Write', input: { file_path: '/etc/hosts', content: 'a\nb\n' } }],
      ['Read README.md', { tool_name: 'Read', input: { file_path: `${cwd}/README.md` } }],
      ['Fetch https://a.example/x', { tool_name: 'WebFetch', input: { url: 'https://a.example/x' } }],
      ['Search for fn main, in src', { tool_name: 'Grep', input: { pattern: 'fn main', path: `${cwd}/src` } }],
      [
        'Plan: Move the orders',
        { tool_name: 'ExitPlanMode', kind: 'plan', input: { plan: '\n## Move the orders\n1. …' } },
      ],
      [
        'Plan: Move the orders',
        { tool_name: 'ExitPlanMode', kind: 'plan', input: { plan: '# Plan\n\nMove the orders' } },
      ],
      ['Plan: Move', { tool_name: 'ExitPlanMode', kind: 'plan', input: { plan: '# Plan: Move' } }],
      [
        'tracker: create issue: title "x", labels_path "y"',
        { tool_name: 'mcp__tracker__create_issue', input: { body: 'long', labels_path: 'y', title: 'x' } },
      ],
      ['tracker: create issue: {"tags":["a"]}', { tool_name: 'mcp__tracker__create_issue', input: { tags: ['a'] } }],
      ['Grant a larger budget', { tool_name: 'plexus_budget', kind: 'budget', input: {} }],
      [
        'Grant a larger budget: 3 of 4 tool calls used',
        { tool_name: 'plexus_budget', kind: 'budget', input: { limit: 'tool_calls', used: 3, granted: 4 } },
      ],
      ['Start a sub-agent: look around', { tool_name: 'Task', input: { description: 'look around', prompt: '…' } }],
      ['Run', { tool_name: 'Bash', input: { command: 7 } }],
    ];
    for (const [expected, called] of cases) expect(say(called)).toBe(expected);
  });

  it('names the first question and how many follow', () => {
    const questions = ['Which format?', 'Which order?'].map((question) => ({ question, options: [] }));
    expect(say({ tool_name: 'AskUserQuestion', kind: 'question', input: { questions } })).toBe(
      'Question: Which format? (and 1 more)',
    );
  });

  it('names the lines of the current file', () => {
    const text = 'one\ntwo\nthree\nfour\n';
    const file = { state: 'text', path: `${cwd}/a`, text } as const;
    const edit = (old_string: string, new_string: string): Called => ({
      tool_name: 'Edit',
      input: { file_path: `${cwd}/a`, old_string, new_string },
    });
    expect(say(edit('two\nthree', 'zwei\ndrei'), file)).toBe('Edit a, lines 2–3');
    expect(say(edit('two', 'zwei'), file)).toBe('Edit a, line 2');
    expect(say(edit('two\n', 'two\nmore\n'), file)).toBe('Edit a, line 2');
    expect(say(edit('absent', 'x'), file)).toBe('Edit a');
  });

  it('tells a new file from an overwritten one', () => {
    const write: Called = { tool_name: 'Write', input: { file_path: `${cwd}/a`, content: 'x' } };
    expect(say(write, { state: 'missing', path: `${cwd}/a` })).toBe('Write a, new file, 1 line');
    expect(say(write, { state: 'text', path: `${cwd}/a`, text: 'y' })).toBe('Write a, replaces the file, 1 line');
  });

  it('cuts a long command', () => {
    const command = `echo ${'x'.repeat(5000)}`;
    expect(say({ tool_name: 'Bash', input: { command } }).length).toBeLessThan(210);
    expect(say({ tool_name: 'Bash', input: { command } }).endsWith('…')).toBe(true);
  });

  it('replaces names of tools by words', () => {
    const names = ['ExitPlanMode', 'AskUserQuestion', 'Bash', 'mcp__a__b__c', 'mcp__x'];
    expect(names.map(toolWords)).toEqual(['Plan', 'Question', 'Bash', 'a: b c', 'mcp__x']);
  });
});
