import { expect, test } from 'vitest';
import { oneLine, output, standing, summary } from './call';
import type { Call } from './fold';

test('what tells the most about a call comes first, in one line', () => {
  expect(summary({ description: 'list', command: 'ls\n  -la' })).toBe('ls -la');
  expect(summary({ odd: 1, other: 'text' })).toBe('text');
  expect(summary({ odd: 1, list: [] })).toBe('odd, list');
  expect(summary({})).toBe('');
  expect(summary({ command: 'x'.repeat(1_000_000) })).toHaveLength(201);
  expect(oneLine(' '.repeat(5000) + 'y')).toBe('…');
});

test('a result is a text, or blocks of which some are none', () => {
  expect(output('a')).toBe('a');
  expect(output([{ type: 'text', text: 'a' }, { type: 'image', source: {} }, 7])).toBe('a\n[image]\n7');
  expect(output({ a: 1 })).toContain('"a": 1');
});

test('a call waits, runs, is done, failed or was denied', () => {
  const call = { approval: null, decided: null, result: null } as Call;
  const by = { kind: 'operator' } as const;
  expect(standing(call, false)).toBe('runs');
  expect(standing(call, true)).toBe('unfinished');
  expect(standing({ ...call, approval: 'p' }, false)).toBe('waits');
  expect(standing({ ...call, decided: { status: 'allowed', by, seq: 1, cut: false } }, false)).toBe('runs');
  expect(standing({ ...call, decided: { status: 'expired', by, seq: 1, cut: false } }, false)).toBe('denied');
  const result = { seq: 1, at: 0, output: '', error: true, cut: false };
  expect(standing({ ...call, result }, false)).toBe('failed');
  expect(standing({ ...call, result: { ...result, error: false } }, true)).toBe('done');
});
