import { expect, test } from 'vitest';
import { freeName, nameFor, promptsOf } from './sessionNames';

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
    'Fix one and test one.',
    'Fix $& two and test $& two.',
  ]);
  expect(promptsOf('Fix this:', 'one')).toEqual(['Fix this:\n\none']);
});
