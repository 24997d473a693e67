import { expect, test } from 'vitest';
import { HubError } from '../stores/api';
import { PAGE, EventPager, shortened, type PageRequest } from './eventPages';

/** A hub with the given number of events in each turn. */
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
const frame = (turn: number, seq: number) => ({ turn, seq, at: 0, event: { type: 'content' as const, text: '' } });

test('the latest page comes first, then earlier pages across turns, each event once', async () => {
  const { poll } = hub([3, 0, 2 * PAGE + 50]);
  const pager = new EventPager(poll);
  let all = await pager.latest();
  expect(all).toHaveLength(PAGE);
  expect(pager.high).toEqual({ turn: 3, seq: 2 * PAGE + 50 });
  while (pager.more) all = [...(await pager.earlier()), ...all];
  const expected = [
    ...[0, 1, 2].map((seq) => `1-${seq}`),
    ...Array.from({ length: 2 * PAGE + 50 }, (_, seq) => `3-${seq}`),
  ];
  expect(places(all)).toEqual(expected);
  expect(await pager.earlier()).toEqual([]);
});

test('of 50,000 events only the shown page is loaded', async () => {
  const { poll, asked } = hub([50_000]);
  await new EventPager(poll).latest();
  expect(asked).toEqual([
    { from_seq: Number.MAX_SAFE_INTEGER, limit: 1 },
    { turn: 1, from_seq: 50_000 - PAGE, limit: PAGE },
  ]);
});

test('known events are old, and the next ones are accepted, even in the next turn', async () => {
  const pager = new EventPager(hub([2]).poll);
  await pager.latest();
  expect(pager.accept(frame(1, 1))).toBe('old');
  expect(pager.accept(frame(1, 2))).toMatchObject({ turn: 1, seq: 2 });
  expect(pager.accept(frame(1, 2))).toBe('old');
  expect(pager.accept(frame(1, 4)), 'a gap is detected').toBe('gap');
  expect(pager.accept(frame(1, 3))).toMatchObject({ seq: 3 });
  expect(pager.accept(frame(2, 1))).toBe('gap');
  expect(pager.accept(frame(2, 0))).toMatchObject({ turn: 2 });
  expect(pager.high).toEqual({ turn: 2, seq: 1 });
});

test('a session without turns has no earlier events', async () => {
  const pager = new EventPager(hub([]).poll);
  expect(await pager.latest()).toEqual([]);
  expect(pager.accept(frame(1, 0))).toMatchObject({ turn: 1, seq: 0 });
  expect(pager.more).toBe(false);
});

test('loading ends where old events were deleted, and the reason is kept', async () => {
  const pager = new EventPager(hub([5, 5], 2).poll);
  await pager.latest();
  expect(await pager.earlier()).toEqual([]);
  expect(pager.gone).toContain('were removed');
  expect(pager.more).toBe(false);
});

test('a long text of a live event is shortened as in a page', () => {
  const long = {
    ...frame(1, 0),
    event: { type: 'tool_use' as const, tool_name: 'T', tool_use_id: 'u', input: { a: ['x'.repeat(20_000)] } },
  };
  const read = shortened(long);
  expect(read.truncated).toBe(true);
  expect(JSON.stringify(read).length).toBeLessThan(9_000);
  expect(shortened(frame(1, 0)).truncated).toBeUndefined();
});
