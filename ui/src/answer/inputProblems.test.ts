import { expect, test } from 'vitest';
import { inputProblems, parseInput } from './inputProblems';

const what = (tool: string, input: object, original: object = input) =>
  inputProblems(tool, input as never, original as never).map(
    (fault) => `${fault.certain ? '!' : '?'} ${fault.field} ${fault.what}`,
  );

test('a valid input has no problems', () => {
  expect(what('Bash', { command: 'ls', timeout: 5 })).toEqual([]);
  expect(
    what('MultiEdit', { file_path: 'a', edits: [{ old_string: 'a', new_string: 'b', replace_all: true }] }),
  ).toEqual([]);
  expect(what('mcp__x__y', { a: 1, b: [2] })).toEqual([]);
});

test('missing, misspelt and mistyped fields are problems', () => {
  expect(what('Bash', { comand: 'ls', timeout: '5' }, { command: 'ls' })).toEqual([
    '! command is missing',
    '! timeout must be a number, not a text',
    '! comand is not a field of this tool',
  ]);
  expect(what('NotebookEdit', { notebook_path: 'a', new_source: '', edit_mode: 'erase' })).toEqual([
    '! edit_mode must be one of replace, insert, delete',
  ]);
  expect(what('MultiEdit', { file_path: 'a', edits: [{ old_string: 'a' }, 7] })).toEqual([
    '! edits[0].new_string is missing',
    '! edits[1] must be an object, not a number',
  ]);
});

test('a field that the agent set is valid, even if it is unknown', () => {
  expect(what('Bash', { command: 'ls', newer: 1 }, { command: 'ls', newer: 1 })).toEqual([]);
});

test("the input of an unknown tool is compared with the agent's input", () => {
  expect(what('mcp__x__y', { a: 'text', c: 1 }, { a: 1, b: 2 })).toEqual([
    '! a must be a number, not a text',
    '? b is missing, but the agent set it',
    '? c was not set by the agent, and the tool may not accept it',
  ]);
});

test('a property that every object has is not taken for a tool', () => {
  expect(what('constructor', { a: 1 })).toEqual([]);
});

test('the JSON must be an object', () => {
  expect(parseInput('{"a": 1}')).toEqual({ input: { a: 1 } });
  expect(parseInput('[1]')).toEqual({ fault: 'must be a JSON object: {…}' });
  expect('fault' in parseInput('{"a": }')).toBe(true);
});
