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

test('deltas are joined, separately for each sub-agent', () => {
  const live = new LiveText();
  live.delta(piece('Hel'));
  live.delta(piece('other', 'task'));
  live.delta(piece('lo'));
  expect(live.now).toEqual([
    { parent: '', kind: 'text', text: 'Hello' },
    { parent: 'task', kind: 'text', text: 'other' },
  ]);
});

test('a stored event replaces the live text', () => {
  const live = new LiveText();
  live.delta(piece('a'));
  live.delta(piece('b', 'task'));
  live.stored(stored('content', { text: 'a' }));
  expect(live.now.map((one) => one.parent)).toEqual(['task']);
  live.stored(stored('complete'));
  expect(live.now).toEqual([]);
});

test('thinking and text are not mixed, and only the end is kept', () => {
  const live = new LiveText();
  live.delta({ event: { type: 'content_block_delta', delta: { thinking: 'hm' } } });
  live.delta(piece('x'.repeat(20_000)));
  expect(live.now).toMatchObject([{ kind: 'text' }]);
  expect(live.now[0]?.text.length).toBe(8192);
  live.delta({ event: { type: 'content_block_start' } });
  live.delta({ event: 'odd' });
  expect(live.now).toEqual([]);
});
