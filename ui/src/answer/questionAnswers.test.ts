import { expect, test } from 'vitest';
import type { Question } from '../pure/toolInput';
import { answersTo, answerTo } from './questionAnswers';

const question = (several: boolean): Question => ({
  text: 'Which?',
  header: '',
  several,
  options: ['A', 'B', 'C'].map((label) => ({ label, description: '', preview: '' })),
});

test('a single choice can be replaced by a typed answer', () => {
  expect(answerTo(question(false), { labels: ['B'], own: '' })).toBe('B');
  expect(answerTo(question(false), { labels: ['B'], own: ' neither ' })).toBe('neither');
  expect(answerTo(question(false), { labels: [], own: ' ' })).toBeNull();
});

test('several choices are joined in the order of the options, with the typed answer last', () => {
  expect(answerTo(question(true), { labels: ['C', 'A'], own: 'and this' })).toBe('A, C, and this');
});

test('there are no answers until every question has one', () => {
  const two = [question(false), { ...question(true), text: 'And?' }];
  expect(answersTo(two, [{ labels: ['A'], own: '' }])).toBeNull();
  expect(
    answersTo(two, [
      { labels: ['A'], own: '' },
      { labels: ['B'], own: '' },
    ]),
  ).toEqual({ 'Which?': 'A', 'And?': 'B' });
});
