import { expect, test } from 'vitest';
import { freeName, nameFor, promptsOf, withoutLine } from './sessionNames';

test('a name comes from the first words of the prompt', () => {
  expect(nameFor('Fix the total: tax is wrong, again and again')).toBe('fix-the-total-tax-is');
  expect(nameFor('Überprüfe die Größe')).toBe('uberprufe-die-groe');
  expect(nameFor('你好')).toBe('session');
});

test('a taken name gets a number', () => {
  expect(freeName('a', new Set(['a', 'a-2']))).toBe('a-3');
  expect(freeName('b', new Set(['a']))).toBe('b');
});

test('each line of a list becomes a prompt', () => {
  expect(promptsOf('Fix {} and test {}.', ' one \n\n$& two')).toEqual([
    { line: 'one', prompt: 'Fix one and test one.' },
    { line: '$& two', prompt: 'Fix $& two and test $& two.' },
  ]);
  expect(promptsOf('Fix this:', 'one')).toEqual([{ line: 'one', prompt: 'Fix this:\n\none' }]);
});

test('a line is taken out of a list once', () => {
  expect(withoutLine('one\n two \none', 'one')).toBe(' two \none');
  expect(withoutLine('one\n two \none', 'two')).toBe('one\none');
  expect(withoutLine('one', 'three')).toBe('one');
});
