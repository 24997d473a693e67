import { expect, test } from 'vitest';
import type { Event, Fields } from '../wire';
import { LiveText } from './liveText';

const piece = (text: string, parent: string | null = null): Fields => ({
  event: { type: 'content_block_delta', delta: { type: 'text_delta', text } },
  parent_tool_use_id: parent,
});
const stored = (type: string, fields: Fields = {}) => ({
  turn: 1,
  seq: 0,
  at: 0,
  event: { type, ...fields } as unknown as Event,
});

test('pieces make up what is being written, for each that writes', () => {
  const writing = new LiveText();
  writing.delta(piece('Hel'));
  writing.delta(piece('other', 'task'));
  writing.delta(piece('lo'));
  expect(writing.now).toEqual([
    { parent: '', kind: 'text', text: 'Hello' },
    { parent: 'task', kind: 'text', text: 'other' },
  ]);
});

test('what is stored takes the place of what was being written', () => {
  const writing = new LiveText();
  writing.delta(piece('a'));
  writing.delta(piece('b', 'task'));
  writing.stored(stored('content', { text: 'a' }));
  expect(writing.now.map((one) => one.parent)).toEqual(['task']);
  writing.stored(stored('complete'));
  expect(writing.now).toEqual([]);
});

test('thinking and text are not mixed, and no more than the end is kept', () => {
  const writing = new LiveText();
  writing.delta({ event: { type: 'content_block_delta', delta: { thinking: 'hm' } } });
  writing.delta(piece('x'.repeat(20_000)));
  expect(writing.now).toMatchObject([{ kind: 'text' }]);
  expect(writing.now[0]?.text.length).toBe(8192);
  writing.delta({ event: { type: 'content_block_start' } });
  writing.delta({ event: 'odd' });
  expect(writing.now).toEqual([]);
});
