import { expect, test } from 'vitest';
import { LONGEST, moved, place, SHORTEST, ticks, zoomed } from './window';

const hour = { from: 0, to: 3_600 };

test('zooming keeps the point under the pointer in its place', () => {
  const near = zoomed(hour, 0.5, 900);
  expect(near).toEqual({ from: 450, to: 2_250 });
  expect(place(near, 900)).toBeCloseTo(place(hour, 900));
});

test('zooming stops at the shortest and the longest window', () => {
  expect(zoomed(hour, 0.0001, 0).to).toBe(SHORTEST);
  const far = zoomed(hour, 1e9, 0);
  expect(far.to - far.from).toBe(LONGEST);
});

test('the window does not move into the future', () => {
  expect(moved(hour, 0.5, 4_000)).toEqual({ from: 400, to: 4_000 });
  expect(moved(hour, 0.5, 3_000)).toEqual(hour);
  expect(moved(hour, -0.5, 3_600)).toEqual({ from: -1_800, to: 1_800 });
});

test('ticks are at round times, and few', () => {
  expect(ticks(hour, 6, 0)).toEqual([0, 600, 1_200, 1_800, 2_400, 3_000, 3_600]);
  expect(ticks({ from: 100, to: 86_500 }, 8, 7_200).every((at) => (at + 7_200) % 10_800 === 0)).toBe(true);
});
