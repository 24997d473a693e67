/** The time until an open approval expires or escalates, in words, and how urgent it is. */

import type { Approval } from '../wire';
import { deadline, URGENT } from './approvalOrder';
import { duration } from './text';

/** An approval with less time than this, in seconds, is marked as the most urgent. */
export const LAST_MINUTES = 120;

export interface TimeLeft {
  /** What happens at the deadline. */
  ends: 'expires' | 'escalates';
  /** In seconds, never negative. */
  seconds: number;
  urgency: 'none' | 'soon' | 'last';
  /** For example "Expires in 4 min 10 s". */
  words: string;
}

/** `null` if the approval is resolved or has no deadline. */
export function timeLeft(
  approval: Pick<Approval, 'status' | 'expires_at' | 'passes_on_at'>,
  now: number,
): TimeLeft | null {
  const at = deadline(approval);
  if (approval.status !== 'pending' || at === Infinity) return null;
  // If both happen at the same time, it expires: nobody is asked after that.
  const ends = at === approval.expires_at ? 'expires' : 'escalates';
  const seconds = Math.max(0, at - now);
  const urgency = seconds < LAST_MINUTES ? 'last' : seconds < URGENT ? 'soon' : 'none';
  const verb = ends === 'expires' ? 'Expires' : 'Escalates';
  return { ends, seconds, urgency, words: seconds < 1 ? `${verb} now` : `${verb} in ${duration(seconds)}` };
}
