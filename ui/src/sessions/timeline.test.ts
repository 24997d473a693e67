import { expect, test } from 'vitest';
import type { Event, Fields } from '../wire';
import { itemAt, Timeline, type Call, type Item, type StoredEvent } from './timeline';

let next = 0;
const event = (type: string, fields: Fields = {}, turn = 1): StoredEvent => ({
  turn,
  seq: next++,
  at: 0,
  event: { type, ...fields } as unknown as Event,
});
const use = (id: string, more: Fields = {}) =>
  event('tool_use', { tool_name: 'Bash', tool_use_id: id, input: { command: 'ls' }, ...more });
const result = (id: string) => event('tool_result', { tool_use_id: id, output: 'done', is_error: false });
const call = (item: Item | undefined): Call => {
  if (item?.kind !== 'call') throw new Error(`not a call: ${item?.kind}`);
  return item;
};

test('a call, its decision and its result are one item', () => {
  const timeline = new Timeline();
  const by = { kind: 'operator' };
  timeline.append([use('a'), event('approval_requested', { approval_id: 'p', tool_use_id: 'a' })]);
  const waits = call(timeline.items[0]);
  expect([waits.approval, waits.decided, waits.result]).toEqual(['p', null, null]);
  timeline.append([
    event('approval_resolved', { approval_id: 'p', tool_use_id: 'a', status: 'allowed', by }),
    result('a'),
  ]);
  expect(timeline.length).toBe(1);
  expect(call(timeline.items[0])).toMatchObject({
    tool: 'Bash',
    decided: { status: 'allowed', by },
    result: { output: 'done' },
  });
  expect(timeline.items[0], 'a changed item is a new object').not.toBe(waits);
  expect(waits.result, 'the old object stays unchanged').toBe(null);
});

test('a result without its call is an item, and is merged when the call is loaded', () => {
  const early = [use('a'), event('content', { text: 'between' })];
  const late = [result('a'), event('content', { text: 'after' })];
  const timeline = new Timeline();
  timeline.append(late);
  expect(call(timeline.items[0]).tool).toBe(null);
  timeline.prepend(early);
  expect(timeline.items.map((item) => item.kind)).toEqual(['call', 'text', 'call', 'text']);
  expect(call(timeline.items[0]).result?.output).toBe('done');
  expect(call(timeline.items[2]).tool).toBe('Bash');
  timeline.append([event('approval_requested', { approval_id: 'q', tool_use_id: 'a' })]);
  expect(call(timeline.items[0]).approval, 'later events update the call itself').toBe('q');
});

test('the calls do not depend on the pages', () => {
  const all: StoredEvent[] = [];
  for (let at = 0; at < 300; at++) all.push(use(`c${at}`));
  for (let at = 0; at < 300; at++) all.push(result(`c${at}`));
  const whole = new Timeline();
  whole.append(all);
  const pages = new Timeline();
  for (let end = all.length; end > 0; end -= 70) pages.prepend(all.slice(Math.max(0, end - 70), end));
  const calls = (timeline: Timeline) =>
    timeline.items.filter((item) => item.kind === 'call' && item.input['command'] && item.seq < 1e9);
  expect(whole.length).toBe(300);
  const first = calls(pages).slice(0, 300) as Call[];
  expect(first.map((item) => [item.id, item.result?.seq])).toEqual(
    (whole.items as Call[]).map((item) => [item.id, item.result?.seq]),
  );
});

test('items of a sub-agent are below its call, at any depth', () => {
  const timeline = new Timeline();
  timeline.append([
    use('task', { tool_name: 'Task' }),
    use('inner', { parent_tool_use_id: 'task' }),
    event('content', { text: 'x', parent_tool_use_id: 'inner' }),
    event('content', { text: 'y', parent_tool_use_id: 'unknown' }),
  ]);
  expect(timeline.items.map((item) => item.depth)).toEqual([0, 1, 2, 1]);
});

test('minor events are left out, problems are not', () => {
  const timeline = new Timeline();
  timeline.append([
    event('system', { subtype: 'init', data: {} }),
    event('system', { subtype: 'stalled', data: { quiet_secs: 60 } }),
    event('system', { subtype: 'sent', data: { text: 'more' } }),
    event('system', { subtype: 'hook', data: { status: 'denied', tool_name: 'Bash', reason: 'no' } }),
    event('system', { subtype: 'rate_limit_event', data: { rate_limit_info: { status: 'allowed' } } }),
    event('content', { text: '  \n' }),
    event('something_new'),
  ]);
  expect(timeline.items.map((item) => item.kind)).toEqual(['note', 'sent', 'note']);
});

test('the same id in another turn is another call', () => {
  const timeline = new Timeline();
  timeline.append([use('a'), { ...result('a'), turn: 2 }]);
  expect(timeline.items.map((item) => call(item).result === null)).toEqual([true, false]);
});

test('fields of the wrong type do no harm', () => {
  const timeline = new Timeline();
  const odd: Fields = {
    text: 7,
    tool_use_id: null,
    input: [1],
    by: 'x',
    usage: null,
    stderr: 'no',
    data: 'x',
    subtype: 3,
  };
  for (const type of [
    'start',
    'content',
    'thinking',
    'tool_use',
    'approval_requested',
    'approval_resolved',
    'tool_result',
    'complete',
    'error',
    'system',
  ]) {
    timeline.append([event(type, odd)]);
  }
  expect(timeline.length).toBeGreaterThan(0);
});

test('the time is linear in the number of events', () => {
  const many = (count: number): StoredEvent[] => {
    const all: StoredEvent[] = [];
    for (let at = 0; at < count; at += 2) all.push(use(`n${at}`), result(`n${at}`));
    return all;
  };
  const spent = (events: StoredEvent[]) => {
    // CPU time, which other load on the machine does not change.
    const started = process.cpuUsage();
    const timeline = new Timeline();
    for (let at = 0; at < events.length; at += 50) timeline.append(events.slice(at, at + 50));
    expect(timeline.length).toBe(events.length / 2);
    return process.cpuUsage(started).user / 1_000;
  };
  const least = (count: number) => Math.min(...[1, 2, 3].map(() => spent(many(count))));
  const small = Math.max(least(5_000), 1);
  expect(least(50_000) / small, 'ten times the events take about ten times as long').toBeLessThan(50);
}, 30_000);

test('a place leads to the item that shows it', () => {
  const timeline = new Timeline();
  const at = (seq: number, turn: number, type: string, fields: Fields = {}): StoredEvent => ({
    ...event(type, fields, turn),
    seq,
  });
  timeline.append([
    at(0, 1, 'start'),
    at(1, 1, 'content', { text: 'a' }),
    at(0, 2, 'start'),
    at(1, 2, 'tool_use', { tool_name: 'Bash', tool_use_id: 'x', input: {} }),
    at(2, 2, 'tool_result', { tool_use_id: 'x', output: '', is_error: false }),
  ]);
  const key = (turn: number, seq: number | null) => itemAt(timeline.items, { turn, seq })?.key ?? null;
  expect([key(1, null), key(2, null), key(1, 1)]).toEqual(['1-0', '2-0', '1-1']);
  // A result is part of the item of its call.
  expect(key(2, 2)).toBe('2-1');
  expect([key(3, null), key(3, 0)]).toEqual([null, null]);
});
