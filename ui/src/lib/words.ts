/** Decider did what to an approval, in words. */

import { clock } from './text';
import type { Approval, Decision, Decider } from '../wire';

export type Names = (session: string) => string | undefined;

export function who(who: Decider, names: Names = () => undefined): string {
  switch (who.kind) {
    case 'operator':
      return 'the operator';
    case 'token':
      return `the token ${who.name}`;
    case 'session':
      return `the session ${names(who.id) ?? who.id.slice(0, 8)}`;
    case 'parent':
      return 'the agent outside that began it';
    case 'hub':
      return 'the hub';
  }
}

/** How an approval ended, and by whom. */
export function ending(
  approval: Pick<Approval, 'status' | 'decision'> & Partial<Pick<Approval, 'kind'>>,
  names?: Names,
): string {
  switch (approval.status) {
    case 'pending':
      return 'Open';
    case 'expired':
      return 'Nobody answered in time';
    case 'withdrawn':
      return 'Withdrawn: the agent does not wait for it any more';
    default:
      // The answers to a question are no change of it.
      if (approval.kind === 'question' && approval.decision?.approve && approval.decision.updated_input)
        return `Answered by ${who(approval.decision.by, names)}`;
      return `${approval.status === 'allowed' ? 'Allowed' : 'Denied'}${by(approval.decision, names)}`;
  }
}

function by(decision: Decision | undefined, names?: Names): string {
  if (!decision) return '';
  if (decision.right === 'rule') return ` by rule ${decision.rule ?? ''}`.trimEnd();
  const edited = decision.approve && decision.updated_input ? ', with changes,' : '';
  const stopped = decision.interrupt ? ' and stopped' : '';
  return `${edited}${stopped} by ${who(decision.by, names)}`;
}

/** A time as a person says it: the time of today, or the day with it. */
export function when(at: number): string {
  const then = new Date(at * 1000);
  return then.toDateString() === new Date().toDateString() ? then.toLocaleTimeString() : clock(at);
}
