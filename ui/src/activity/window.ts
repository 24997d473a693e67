/** The window of time that the activity view shows: zooming, moving, and the ticks of its axis. All times are in seconds. */

export interface TimeWindow {
  from: number;
  to: number;
}

/** The shortest and the longest window. */
export const SHORTEST = 60;
export const LONGEST = 90 * 86_400;

/** The window after zooming by a factor around a point; below 1 it zooms in. The window stays within its limits. */
export function zoomed({ from, to }: TimeWindow, factor: number, around: number): TimeWindow {
  const length = Math.min(LONGEST, Math.max(SHORTEST, (to - from) * factor));
  const share = to === from ? 0.5 : (around - from) / (to - from);
  const start = around - share * length;
  return { from: start, to: start + length };
}

/** The window moved by a share of its length, but not into the future. */
export function moved({ from, to }: TimeWindow, share: number, now: number): TimeWindow {
  const by = Math.min((to - from) * share, Math.max(0, now - to));
  return { from: from + by, to: to + by };
}

/** Where a time is in the window, from 0 to 1; outside it, the nearest end. */
export function place({ from, to }: TimeWindow, at: number): number {
  return Math.min(1, Math.max(0, (at - from) / (to - from)));
}

const STEPS = [
  10, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600,
  2_592_000,
];

/** The times of the ticks: at most `most`, at round local times. `offset` is the distance of local time from UTC, in seconds. */
export function ticks({ from, to }: TimeWindow, most: number, offset: number): number[] {
  const step = STEPS.find((one) => (to - from) / one <= most) ?? LONGEST;
  const all: number[] = [];
  for (let at = Math.ceil((from + offset) / step) * step - offset; at <= to; at += step) all.push(at);
  return all;
}

/** The text of a tick: times within a day, dates for longer windows. */
export function tickText(at: number, length: number, locale?: string): string {
  const date = new Date(at * 1000);
  if (length > 2 * 86_400) return date.toLocaleDateString(locale, { month: 'short', day: 'numeric' });
  const parts: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit' };
  if (length <= 600) parts.second = '2-digit';
  return date.toLocaleTimeString(locale, parts);
}
