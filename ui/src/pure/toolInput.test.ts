import { expect, test } from 'vitest';
import type { Fields, Json } from '../wire';
import { inputLine, inputParts, within } from './toolInput';

test('a command has its description and options', () => {
  expect(
    inputParts('Bash', {
      command: 'npm test',
      description: 'Runs the tests',
      timeout: 120000,
      run_in_background: true,
    }),
  ).toEqual([
    {
      kind: 'command',
      text: 'npm test',
      description: 'Runs the tests',
      notes: ['timeout 120 s', 'runs in the background'],
    },
  ]);
});

test('an edit is a change, with a note if it replaces every occurrence', () => {
  expect(inputParts('Edit', { file_path: '/a/b.rs', old_string: 'x', new_string: 'y', replace_all: true })).toEqual([
    { kind: 'path', label: 'File', path: '/a/b.rs' },
    expect.objectContaining({ kind: 'change', label: 'Change', notes: ['replaces every occurrence'] }),
  ]);
});

test('several edits are several changes', () => {
  const parts = inputParts('MultiEdit', {
    file_path: 'a',
    edits: [
      { old_string: '1', new_string: '2' },
      { old_string: '3', new_string: '4', replace_all: true },
    ],
  });
  expect(parts.map((part) => part.kind)).toEqual(['path', 'change', 'change']);
});

/** Every text and number anywhere in an input. */
function leaves(value: Json): string[] {
  if (value === null || typeof value === 'boolean') return [];
  if (typeof value !== 'object') return [String(value)];
  return Object.entries(value).flatMap(([key, one]) => [...(Array.isArray(value) ? [] : [key]), ...leaves(one)]);
}

test('no part of an input is hidden, whatever its shape', () => {
  const inputs: [string, Fields][] = [
    ['Bash', { command: 'ls', secret_field: 'hidden?', timeout: 'not a number' }],
    ['Bash', { command: ['rm', '-rf', 'x1'], description: 'harmless' }],
    ['Edit', { file_path: 'f1', old_string: 7, new_string: 'n1' }],
    ['MultiEdit', { file_path: 'f2', edits: [{ old_string: 'o1', new_string: 'n2', extra: 'e1' }] }],
    ['Write', { file_path: { odd: 'p1' }, content: 'c1' }],
    ['NotebookEdit', { notebook_path: 'nb1', new_source: 's1', cell_id: 'id1', edit_mode: 'insert1' }],
    [
      'AskUserQuestion',
      {
        questions: [
          {
            question: 'q1',
            header: 'h1',
            options: [{ label: 'l1', description: 'd1', preview: 'pre1' }],
            multiSelect: false,
          },
        ],
        answers: { q1: 'given1' },
      },
    ],
    ['AskUserQuestion', { questions: [{ question: 'q2', surprise: 'su1' }] }],
    ['ExitPlanMode', { plan: 'plan1', planFilePath: 'pf1' }],
    ['mcp__a__b', { deep: { er: [{ x: 'leaf1' }] }, n: 42 }],
    ['WebFetch', { url: 'https://u1', prompt: 'pr1' }],
    ['Task', { prompt: 'tp1', subagent_type: 'st1' }],
  ];
  /** Names that a part replaces by its own label. */
  const words = [
    'command',
    'description',
    'file_path',
    'content',
    'edits',
    'old_string',
    'new_string',
    'questions',
    'question',
    'header',
    'options',
    'label',
    'preview',
    'multiSelect',
    'plan',
    'prompt',
    'notebook_path',
    'new_source',
  ];
  for (const [tool, input] of inputs) {
    const shown = JSON.stringify(inputParts(tool, input));
    for (const leaf of leaves(input).filter((leaf) => !words.includes(leaf)))
      expect(shown, `${leaf} of ${tool}`).toContain(leaf);
  }
});

test('an input with many fields has a bounded number of parts, and shows all fields', () => {
  const input = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k${i}`, i]));
  const parts = inputParts('other', input);
  expect(parts.length).toBe(101);
  expect(JSON.stringify(parts)).toContain('k4999');
});

test('a call in one line is short', () => {
  expect(inputLine('Bash', { command: `echo\n\n  ${'x'.repeat(1_000_000)}` }).length).toBeLessThanOrEqual(400);
  expect(inputLine('AskUserQuestion', { questions: [{ question: 'Which?', options: [] }] })).toBe('Which?');
  expect(inputLine('other', {})).toBe('');
});

test('a path is shortened only if it is inside the directory', () => {
  expect(within('/home/a/x/y', '/home/a')).toBe('x/y');
  expect(within('/home/ab/x', '/home/a')).toBe('/home/ab/x');
  expect(within('/home/a/../b', '/home/a')).toBe('/home/a/../b');
});

test('an overwritten file is a change, and a new file is its content', () => {
  const write = { file_path: '/a', content: 'x\n' };
  expect(inputParts('Write', write)[1]).toMatchObject({ kind: 'code', text: 'x\n' });
  expect(inputParts('Write', write, { state: 'text', path: '/a', text: 'y\n' })[1]).toMatchObject({
    kind: 'change',
    notes: ['replaces the whole file'],
  });
  expect(inputParts('Write', write, { state: 'unavailable', path: '/a', reason: 'it is too large' })[1]).toMatchObject({
    kind: 'code',
    notes: ['cannot be compared with the current file: it is too large'],
  });
});
