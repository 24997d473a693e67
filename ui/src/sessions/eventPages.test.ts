import { expect, test } from 'vitest';
import { HubError } from '../stores/api';
import { PAGE, EventPager, shortened, type PageRequest } from './eventPages';

/** A hub with so many events in each turn. */
function hub(turns: number[], goneBefore = 0) {
  const asked: PageRequest[] = [];
  const poll = async (wanted: PageRequest) => {
    asked.push(wanted);
    const turn = wanted.turn ?? turns.length;
    if (turn < goneBefore) throw new HubError('gone', 'the events of turn 1 were removed');
    const total = turns[turn - 1] ?? 0;
    const seqs = Array.from({ length: total }, (_, seq) => seq).slice(wanted.from_seq, wanted.from_seq + wanted.limit);
    const events = seqs.map((seq) => ({ seq, at: 0, event: { type: 'content' as const, text: `${turn}-${seq}` } }));
    return { turn, events, total_events: total };
  };
  return { poll, asked };
}
const places = (events: { turn: number; seq: number }[]) => events.map((event) => `${event.turn}-${event.seq}`);
const told = (turn: number, seq: number) => ({ turn, seq, at: 0, event: { type: 'content' as const, text: '' } });

test('the latest page comes first, then those before it, over turns, each event once', async () => {
  const { poll } = hub([3, 0, 2 * PAGE + 50]);
  const reading = new EventPager(poll);
  let all = await reading.begin();
  expect(all).toHaveLength(PAGE);
  expect(reading.high).toEqual({ turn: 3, seq: 2 * PAGE + 50 });
  while (reading.more) all = [...(await reading.earlier()), ...all];
  const expected = [
    ...[0, 1, 2].map((seq) => `1-${seq}`),
    ...Array.from({ length: 2 * PAGE + 50 }, (_, seq) => `3-${seq}`),
  ];
  expect(places(all)).toEqual(expected);
  expect(await reading.earlier()).toEqual([]);
});

test('of fifty thousand events no more are read than are looked at', async () => {
  const { poll, asked } = hub([50_000]);
  await new EventPager(poll).begin();
  expect(asked).toEqual([
    { from_seq: Number.MAX_SAFE_INTEGER, limit: 1 },
    { turn: 1, from_seq: 50_000 - PAGE, limit: PAGE },
  ]);
});

test('what was read and is told again is old, and what follows is taken, into the next turn as well', async () => {
  const reading = new EventPager(hub([2]).poll);
  await reading.begin();
  expect(reading.hear(told(1, 1))).toBe('old');
  expect(reading.hear(told(1, 2))).toMatchObject({ turn: 1, seq: 2 });
  expect(reading.hear(told(1, 2))).toBe('old');
  expect(reading.hear(told(1, 4)), 'nothing is left out unseen').toBe('gap');
  expect(reading.hear(told(1, 3))).toMatchObject({ seq: 3 });
  expect(reading.hear(told(2, 1))).toBe('gap');
  expect(reading.hear(told(2, 0))).toMatchObject({ turn: 2 });
  expect(reading.high).toEqual({ turn: 2, seq: 1 });
});

test('a session without a turn has nothing before its first event', async () => {
  const reading = new EventPager(hub([]).poll);
  expect(await reading.begin()).toEqual([]);
  expect(reading.hear(told(1, 0))).toMatchObject({ turn: 1, seq: 0 });
  expect(reading.more).toBe(false);
});

test('where old events were removed, reading ends there and says so', async () => {
  const reading = new EventPager(hub([5, 5], 2).poll);
  await reading.begin();
  expect(await reading.earlier()).toEqual([]);
  expect(reading.gone).toContain('were removed');
  expect(reading.more).toBe(false);
});

test('a long text that is told live is kept no longer than one that was read', () => {
  const long = {
    ...told(1, 0),
    event: { type: 'tool_use' as const, tool_name: 'T', tool_use_id: 'u', input: { a: ['x'.repeat(20_000)] } },
  };
  const read = shortened(long);
  expect(read.truncated).toBe(true);
  expect(JSON.stringify(read).length).toBeLessThan(9_000);
  expect(shortened(told(1, 0)).truncated).toBeUndefined();
});
