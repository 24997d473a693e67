import { expect, test } from 'vitest';
import type { Call } from './timeline';
import { oneLine, resultParts, resultText, callState, inputSummary } from './toolCall';

test('the most descriptive field comes first, in one line', () => {
  expect(inputSummary({ description: 'list', command: 'ls\n  -la' })).toBe('ls -la');
  expect(inputSummary({ odd: 1, other: 'text' })).toBe('text');
  expect(inputSummary({ odd: 1, list: [] })).toBe('odd, list');
  expect(inputSummary({})).toBe('');
  expect(inputSummary({ command: 'x'.repeat(1_000_000) })).toHaveLength(201);
  expect(oneLine(' '.repeat(5000) + 'y')).toBe('…');
});

test('a result is a text or content blocks', () => {
  expect(resultText('a')).toBe('a');
  expect(resultText([{ type: 'text', text: 'a' }, { type: 'image', source: {} }, 7])).toBe('a\n[image]\n7');
  expect(resultText({ a: 1 })).toContain('"a": 1');
});

test('images stay between the texts of a result', () => {
  const source = { type: 'base64', media_type: 'image/png', data: 'AAAA' };
  expect(
    resultParts([
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
      { type: 'image', source },
      { type: 'text', text: 'c' },
    ]),
  ).toEqual([
    { kind: 'text', text: 'a\nb' },
    { kind: 'image', image: { name: '', claimed: 'image/png', data: 'AAAA' } },
    { kind: 'text', text: 'c' },
  ]);
  expect(resultParts('a')).toEqual([{ kind: 'text', text: 'a' }]);
  expect(resultParts([])).toEqual([]);
});

test('a call is waiting, running, done, failed or denied', () => {
  const call = { approval: null, decided: null, result: null } as Call;
  const by = { kind: 'operator' } as const;
  expect(callState(call, false)).toBe('runs');
  expect(callState(call, true)).toBe('unfinished');
  expect(callState({ ...call, approval: 'p' }, false)).toBe('waits');
  expect(callState({ ...call, decided: { status: 'allowed', by, seq: 1, cut: false } }, false)).toBe('runs');
  expect(callState({ ...call, decided: { status: 'expired', by, seq: 1, cut: false } }, false)).toBe('denied');
  const result = { seq: 1, at: 0, output: '', error: true, cut: false };
  expect(callState({ ...call, result }, false)).toBe('failed');
  expect(callState({ ...call, result: { ...result, error: false } }, true)).toBe('done');
});
