import { expect, test } from 'vitest';
import { best, score } from './find';

test('every word must occur', () => {
  expect(score('check fix', 'checkout-fix')).toBeGreaterThan(0);
  expect(score('check gone', 'checkout-fix')).toBe(0);
  expect(score('', 'anything')).toBeGreaterThan(0);
});

test('the start of a text and of a word count more', () => {
  expect(best('fix', ['prefix', 'checkout-fix', 'fix it'], (text) => text, 3)).toEqual([
    'fix it',
    'checkout-fix',
    'prefix',
  ]);
});

test('special characters are letters like others', () => {
  expect(score('a.b (c', 'x a.b (c')).toBeGreaterThan(0);
  expect(score('a.b', 'axb')).toBe(0);
});
