import { expect, test } from 'vitest';
import { inputProblems, parseInput } from './inputProblems';

const what = (tool: string, input: object, original: object = input) =>
  inputProblems(tool, input as never, original as never).map(
    (fault) => `${fault.certain ? '!' : '?'} ${fault.field} ${fault.what}`,
  );

test('what a tool takes has no fault', () => {
  expect(what('Bash', { command: 'ls', timeout: 5 })).toEqual([]);
  expect(
    what('MultiEdit', { file_path: 'a', edits: [{ old_string: 'a', new_string: 'b', replace_all: true }] }),
  ).toEqual([]);
  expect(what('mcp__x__y', { a: 1, b: [2] })).toEqual([]);
});

test('what is missing, misspelt or of another type is a fault', () => {
  expect(what('Bash', { comand: 'ls', timeout: '5' }, { command: 'ls' })).toEqual([
    '! command is missing',
    '! timeout is a number, not a text',
    '! comand is not a field of this tool',
  ]);
  expect(what('NotebookEdit', { notebook_path: 'a', new_source: '', edit_mode: 'erase' })).toEqual([
    '! edit_mode is one of replace, insert, delete',
  ]);
  expect(what('MultiEdit', { file_path: 'a', edits: [{ old_string: 'a' }, 7] })).toEqual([
    '! edits[0].new_string is missing',
    '! edits[1] is an object, not a number',
  ]);
});

test('a field that the agent gave itself is none, known or not', () => {
  expect(what('Bash', { command: 'ls', newer: 1 }, { command: 'ls', newer: 1 })).toEqual([]);
});

test('a tool that is not known is held against what the agent gave', () => {
  expect(what('mcp__x__y', { a: 'text', c: 1 }, { a: 1, b: 2 })).toEqual([
    '! a is a number, not a text',
    '? b was given by the agent and is left out',
    '? c was not given by the agent; whether the tool takes it is not known',
  ]);
});

test('a name that every object has is not taken for a tool', () => {
  expect(what('constructor', { a: 1 })).toEqual([]);
});

test('JSON is read, and has to be an object', () => {
  expect(parseInput('{"a": 1}')).toEqual({ input: { a: 1 } });
  expect(parseInput('[1]')).toEqual({ fault: 'an object in braces is expected' });
  expect('fault' in parseInput('{"a": }')).toBe(true);
});
