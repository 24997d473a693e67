import { expect, test } from 'vitest';
import { Blocks } from './sse';

test('an event is whole when its empty line is there, however it was cut', () => {
  const blocks = new Blocks();
  expect(blocks.push(': connected\n\nid: 7\neve')).toEqual([]);
  expect(blocks.push('nt: approval\ndata: {"a"')).toEqual([]);
  expect(blocks.push(': 1}\n\n: alive\n\nevent: changed\ndata: {}\n\n')).toEqual([
    { id: '7', event: 'approval', data: '{"a": 1}' },
    { id: '', event: 'changed', data: '{}' },
  ]);
});
