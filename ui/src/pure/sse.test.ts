import { expect, test } from 'vitest';
import { SseParser } from './sse';

test('an event is complete at its empty line, wherever the chunks end', () => {
  const parser = new SseParser();
  expect(parser.push(': connected\n\nid: 7\neve')).toEqual([]);
  expect(parser.push('nt: approval\ndata: {"a"')).toEqual([]);
  expect(parser.push(': 1}\n\n: alive\n\nevent: changed\ndata: {}\n\n')).toEqual([
    { id: '7', event: 'approval', data: '{"a": 1}' },
    { id: '', event: 'changed', data: '{}' },
  ]);
});
