import { expect, test } from 'vitest';
import { answersIn, inputChanges } from './inputChanges';

test('changes are listed field by field', () => {
  expect(inputChanges({ a: 'x\ny', b: 1, c: [1] }, { a: 'x\nz', c: [1], d: true })).toEqual([
    { name: 'a', before: 'x\ny', after: 'x\nz' },
    { name: 'b', before: '1', after: '' },
    { name: 'd', before: '', after: 'true' },
  ]);
});

test('answers to questions are not other changes', () => {
  const questions = [{ question: 'Which?' }];
  expect(answersIn('AskUserQuestion', { questions }, { questions, answers: { 'Which?': 'Red' } })).toEqual([
    { question: 'Which?', answer: 'Red' },
  ]);
  expect(answersIn('AskUserQuestion', { questions }, { questions: [], answers: { 'Which?': 'Red' } })).toBeNull();
  expect(answersIn('Bash', { command: 'ls' }, { command: 'ls', answers: {} })).toBeNull();
});
