/** What the lanes of the activity view say: the share of time in each state, and texts for people who do not see the picture. */

import { duration } from '../pure/text';
import type { AnsweredBy, ApprovalStatus, Lane, LaneMark, LaneSpan, LaneState } from '../wire';
import type { TimeWindow } from './window';

export const STATES: Record<LaneState | 'idle', string> = {
  working: 'Working',
  waiting_for_person: 'Waiting for a person',
  waiting_for_agent: 'Waiting for an agent',
  idle: 'Idle',
};

const BY: Record<AnsweredBy, string> = {
  rule: 'by a rule',
  person: 'by a person',
  agent: 'by an agent',
  hub: 'by the hub',
};
const OUTCOMES: Record<ApprovalStatus, string> = {
  pending: 'open',
  allowed: 'allowed',
  denied: 'denied',
  expired: 'expired',
  withdrawn: 'withdrawn',
};

/** The seconds that a lane spent in each state within the window, up to now. */
export function totals(
  lane: Pick<Lane, 'spans'>,
  { from, to }: TimeWindow,
  now: number,
): Record<LaneState | 'idle', number> {
  const sums = { working: 0, waiting_for_person: 0, waiting_for_agent: 0, idle: Math.max(0, Math.min(to, now) - from) };
  for (const span of lane.spans) {
    const secs = Math.max(0, Math.min(span.to, to) - Math.max(span.from, from));
    sums[span.state] += secs;
    sums.idle = Math.max(0, sums.idle - secs);
  }
  return sums;
}

/** The height of a path; the picture clips it to the lane. */
const TALL = 100;
/** The smallest width of a span, in pixels. */
const NARROWEST = 2;

/** The spans of one state as one path in pixels: a lane needs few elements, however many spans it has. */
export function outline(
  spans: readonly LaneSpan[],
  state: LaneState,
  { from, to }: TimeWindow,
  pixel: (at: number) => number,
): string {
  let path = '';
  for (const span of spans) {
    if (span.state !== state || span.to <= from || span.from >= to) continue;
    const left = pixel(span.from);
    const width = Math.max(NARROWEST, pixel(span.to) - left);
    path += `M${left.toFixed(1)} 0h${width.toFixed(1)}v${TALL}h-${width.toFixed(1)}z`;
  }
  return path;
}

/** A lane in words. */
export function laneText(lane: Lane, window: TimeWindow, now: number): string {
  const sums = totals(lane, window, now);
  const parts = (Object.keys(STATES) as (LaneState | 'idle')[])
    .filter((state) => sums[state] > 0)
    .map((state) => `${STATES[state].toLowerCase()} ${duration(sums[state])}`);
  const approvals = lane.marks.length + (lane.more_marks ?? 0);
  return `${lane.path}: ${parts.join(', ') || 'nothing'}; ${approvals} ${approvals === 1 ? 'approval' : 'approvals'}`;
}

/** An approval in words. */
export function markText(mark: LaneMark): string {
  const waited = mark.resolved_at === undefined ? '' : ` after ${duration(mark.resolved_at - mark.asked_at)}`;
  return `${OUTCOMES[mark.status]}${mark.by === undefined ? '' : ` ${BY[mark.by]}`}${waited}`;
}
