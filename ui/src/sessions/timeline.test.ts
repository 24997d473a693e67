import { expect, test } from 'vitest';
import type { Event, Fields } from '../wire';
import { Timeline, type Call, type Item, type StoredEvent } from './timeline';

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
  const fold = new Timeline();
  const by = { kind: 'operator' };
  fold.append([use('a'), event('approval_requested', { approval_id: 'p', tool_use_id: 'a' })]);
  const waits = call(fold.items[0]);
  expect([waits.approval, waits.decided, waits.result]).toEqual(['p', null, null]);
  fold.append([event('approval_resolved', { approval_id: 'p', tool_use_id: 'a', status: 'allowed', by }), result('a')]);
  expect(fold.length).toBe(1);
  expect(call(fold.items[0])).toMatchObject({
    tool: 'Bash',
    decided: { status: 'allowed', by },
    result: { output: 'done' },
  });
  expect(fold.items[0], 'a change is another object').not.toBe(waits);
  expect(waits.result, 'what was given out stays as it was').toBe(null);
});

test('a result whose call was not read yet is shown where it came, and put together when the call is read', () => {
  const early = [use('a'), event('content', { text: 'between' })];
  const late = [result('a'), event('content', { text: 'after' })];
  const fold = new Timeline();
  fold.append(late);
  expect(call(fold.items[0]).tool).toBe(null);
  fold.prepend(early);
  expect(fold.items.map((item) => item.kind)).toEqual(['call', 'text', 'call', 'text']);
  expect(call(fold.items[0]).result?.output).toBe('done');
  expect(call(fold.items[2]).tool).toBe('Bash');
  fold.append([event('approval_requested', { approval_id: 'q', tool_use_id: 'a' })]);
  expect(call(fold.items[0]).approval, 'what comes later goes to the call itself').toBe('q');
});

test('in whatever pages events are read, the same calls come out', () => {
  const all: StoredEvent[] = [];
  for (let at = 0; at < 300; at++) all.push(use(`c${at}`));
  for (let at = 0; at < 300; at++) all.push(result(`c${at}`));
  const whole = new Timeline();
  whole.append(all);
  const pages = new Timeline();
  for (let end = all.length; end > 0; end -= 70) pages.prepend(all.slice(Math.max(0, end - 70), end));
  const calls = (fold: Timeline) =>
    fold.items.filter((item) => item.kind === 'call' && item.input['command'] && item.seq < 1e9);
  expect(whole.length).toBe(300);
  const first = calls(pages).slice(0, 300) as Call[];
  expect(first.map((item) => [item.id, item.result?.seq])).toEqual(
    (whole.items as Call[]).map((item) => [item.id, item.result?.seq]),
  );
});

test('what a sub-agent does stands below its call, at any depth', () => {
  const fold = new Timeline();
  fold.append([
    use('task', { tool_name: 'Task' }),
    use('inner', { parent_tool_use_id: 'task' }),
    event('content', { text: 'x', parent_tool_use_id: 'inner' }),
    event('content', { text: 'y', parent_tool_use_id: 'unknown' }),
  ]);
  expect(fold.items.map((item) => item.depth)).toEqual([0, 1, 2, 1]);
});

test('what only distracts is left out, what went wrong is not', () => {
  const fold = new Timeline();
  fold.append([
    event('system', { subtype: 'init', data: {} }),
    event('system', { subtype: 'stalled', data: { quiet_secs: 60 } }),
    event('system', { subtype: 'sent', data: { text: 'more' } }),
    event('system', { subtype: 'rate_limit_event', data: { rate_limit_info: { status: 'allowed' } } }),
    event('content', { text: '  \n' }),
    event('something_new'),
  ]);
  expect(fold.items.map((item) => item.kind)).toEqual(['note', 'sent']);
});

test('the same id in another turn is another call', () => {
  const fold = new Timeline();
  fold.append([use('a'), { ...result('a'), turn: 2 }]);
  expect(fold.items.map((item) => call(item).result === null)).toEqual([true, false]);
});

test('fields of the wrong kind do no harm', () => {
  const fold = new Timeline();
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
    fold.append([event(type, odd)]);
  }
  expect(fold.length).toBeGreaterThan(0);
});

test('fifty thousand events take ten times as long as five thousand, and not a hundred times', () => {
  const many = (count: number): StoredEvent[] => {
    const all: StoredEvent[] = [];
    for (let at = 0; at < count; at += 2) all.push(use(`n${at}`), result(`n${at}`));
    return all;
  };
  const spent = (events: StoredEvent[]) => {
    // The time of the processor, which others that use the machine do not lengthen.
    const begun = process.cpuUsage();
    const fold = new Timeline();
    for (let at = 0; at < events.length; at += 50) fold.append(events.slice(at, at + 50));
    expect(fold.length).toBe(events.length / 2);
    return process.cpuUsage(begun).user / 1_000;
  };
  const least = (count: number) => Math.min(...[1, 2, 3].map(() => spent(many(count))));
  const small = Math.max(least(5_000), 1);
  expect(least(50_000) / small, 'ten times as many take about ten times as long').toBeLessThan(50);
}, 30_000);
