import { expect, test } from 'vitest';
import { conflictPrompt, reviewPrompt, type Comment } from './comments';

const comment = (path: string, line: number, text: string, more: Partial<Comment> = {}): Comment => ({
  key: line,
  path,
  side: 'new',
  line,
  code: `code ${line}`,
  text,
  ...more,
});

test('all comments become one prompt, in the order of files and lines', () => {
  const comments = [
    comment('b.ts', 3, 'Why? '),
    comment('a.ts', 9, 'Late'),
    comment('a.ts', 2, 'Early', { side: 'old' }),
  ];
  expect(reviewPrompt(comments, '  Good start.')).toBe(
    [
      'I reviewed your changes. Please address these comments.',
      'Good start.',
      'a.ts, line 2 of the old version:\n> code 2\nEarly',
      'a.ts, line 9:\n> code 9\nLate',
      'b.ts, line 3:\n> code 3\nWhy?',
    ].join('\n\n'),
  );
});

test('a long line is cut in the prompt', () => {
  expect(reviewPrompt([comment('a', 1, 'x', { code: 'y'.repeat(400) })], '')).toContain(`> ${'y'.repeat(300)}…\n`);
});

test('the agent is asked to resolve conflicts', () => {
  expect(conflictPrompt('main', ['a.ts', 'b.ts'])).toContain('- a.ts\n- b.ts');
});
