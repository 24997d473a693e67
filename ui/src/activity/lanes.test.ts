import { expect, test } from 'vitest';
import type { Lane } from '../wire';
import { laneText, markText, outline, totals } from './lanes';

const lane: Lane = {
  session_id: 's',
  session_name: 'worker',
  path: 'lead/worker',
  depth: 1,
  spans: [
    { state: 'working', from: -50, to: 100 },
    { state: 'waiting_for_person', from: 100, to: 160 },
  ],
  marks: [
    {
      approval_id: 'a',
      tool_name: 'Bash',
      asked_at: 100,
      asked_of: 'person',
      status: 'allowed',
      resolved_at: 160,
      by: 'person',
    },
  ],
};

test('the totals count only the time in the window, and nothing after now', () => {
  expect(totals(lane, { from: 0, to: 1_000 }, 300)).toEqual({
    working: 100,
    waiting_for_person: 60,
    waiting_for_agent: 0,
    idle: 140,
  });
});

test('a lane and an approval are described in words', () => {
  expect(laneText(lane, { from: 0, to: 1_000 }, 160)).toBe(
    'lead/worker: working 1 min 40 s, waiting for a person 1 min; 1 approval',
  );
  expect(markText(lane.marks[0]!)).toBe('allowed by a person after 1 min');
});

test('the spans of a state are one path, each at least two pixels wide, without those outside the window', () => {
  const spans = [
    { state: 'working' as const, from: 0, to: 100 },
    { state: 'waiting_for_person' as const, from: 100, to: 200 },
    { state: 'working' as const, from: 200, to: 200.1 },
    { state: 'working' as const, from: 900, to: 950 },
  ];
  const pixel = (at: number) => at / 10;
  expect(outline(spans, 'working', { from: 0, to: 500 }, pixel)).toBe('M0.0 0h10.0v100h-10.0zM20.0 0h2.0v100h-2.0z');
  expect(outline(spans, 'waiting_for_agent', { from: 0, to: 500 }, pixel)).toBe('');
});
