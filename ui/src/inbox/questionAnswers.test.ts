import { expect, test } from 'vitest';
import type { Question } from '../pure/toolInput';
import { answersTo, answerTo } from './questionAnswers';

const question = (several: boolean): Question => ({
  text: 'Which?',
  header: '',
  several,
  options: ['A', 'B', 'C'].map((label) => ({ label, description: '', preview: '' })),
});

test('one is chosen, or said in own words', () => {
  expect(answerTo(question(false), { labels: ['B'], own: '' })).toBe('B');
  expect(answerTo(question(false), { labels: ['B'], own: ' neither ' })).toBe('neither');
  expect(answerTo(question(false), { labels: [], own: ' ' })).toBeNull();
});

test('several are joined in the order of the options, own words last', () => {
  expect(answerTo(question(true), { labels: ['C', 'A'], own: 'and this' })).toBe('A, C, and this');
});

test('only when all are answered there are answers', () => {
  const two = [question(false), { ...question(true), text: 'And?' }];
  expect(answersTo(two, [{ labels: ['A'], own: '' }])).toBeNull();
  expect(
    answersTo(two, [
      { labels: ['A'], own: '' },
      { labels: ['B'], own: '' },
    ]),
  ).toEqual({ 'Which?': 'A', 'And?': 'B' });
});
