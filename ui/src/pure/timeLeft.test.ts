import { expect, test } from 'vitest';
import { timeLeft } from './timeLeft';

const pending = { status: 'pending' as const };

test('the earlier of two deadlines counts, and its effect is named', () => {
  expect(timeLeft({ ...pending, expires_at: 5_000, passes_on_at: 1_250 }, 1_000)).toEqual({
    ends: 'escalates',
    seconds: 250,
    urgency: 'soon',
    words: 'Escalates in 4 min 10 s',
  });
  expect(timeLeft({ ...pending, expires_at: 1_250, passes_on_at: 1_250 }, 1_000)?.words).toBe('Expires in 4 min 10 s');
});

test('the urgency grows as the time runs out', () => {
  const at = (now: number) => timeLeft({ ...pending, expires_at: 10_000 }, now);
  expect(
    [at(1_000), at(9_500), at(9_950), at(9_999.5), at(12_000)].map((left) => [left?.urgency, left?.words]),
  ).toEqual([
    ['none', 'Expires in 2 h 30 min'],
    ['soon', 'Expires in 8 min 20 s'],
    ['last', 'Expires in 50 s'],
    ['last', 'Expires now'],
    ['last', 'Expires now'],
  ]);
});

test('an approval without a deadline and a resolved one have no time left', () => {
  expect(timeLeft(pending, 0)).toBeNull();
  expect(timeLeft({ status: 'allowed', expires_at: 10 }, 0)).toBeNull();
});
