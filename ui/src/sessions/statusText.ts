/** Texts for the status of sessions, permission modes and policies. */

import { visible } from '../pure/text';
import type { Attention, SessionView, Status } from '../wire';

/** The urgency of a state: it waits for an approval, has a problem, is running, or is at rest. */
export type Tone = 'asks' | 'trouble' | 'works' | 'rests';

const ATTENTION: Record<Attention, { text: string; tone: Tone }> = {
  permission: { text: 'waiting for approval of a tool call', tone: 'asks' },
  question: { text: 'asking a question', tone: 'asks' },
  plan: { text: 'presenting a plan', tone: 'asks' },
  budget: { text: 'budget exhausted', tone: 'asks' },
  rate_limited: { text: 'rate-limited by the API', tone: 'trouble' },
  api_retry: { text: 'API error, retrying', tone: 'trouble' },
  stalled: { text: 'stalled: no response from the model', tone: 'trouble' },
};

const STATUS: Record<Status, { text: string; tone: Tone }> = {
  idle: { text: 'not started', tone: 'rests' },
  running: { text: 'running', tone: 'works' },
  awaiting_permission: { text: 'waiting for approval', tone: 'asks' },
  complete: { text: 'complete', tone: 'rests' },
  failed: { text: 'failed', tone: 'trouble' },
  interrupted: { text: 'interrupted', tone: 'rests' },
};

export interface State {
  text: string;
  tone: Tone;
}

/** The state of a session. What blocks it takes precedence over its status. */
export function sessionState(session: Pick<SessionView, 'status' | 'attention'>): State {
  const known = (session.attention ?? []).flatMap((one) => ATTENTION[one] ?? []);
  if (known.length === 0) return STATUS[session.status] ?? { text: String(session.status), tone: 'rests' };
  const tone = known.some((one) => one.tone === 'asks') ? 'asks' : 'trouble';
  return { text: known.map((one) => one.text).join(', '), tone };
}

/** Whether a person should look at it. */
export function needsAttention(session: Pick<SessionView, 'status' | 'attention'>): boolean {
  const { tone } = sessionState(session);
  return tone === 'asks' || tone === 'trouble';
}

/** Whether a turn is running. */
export function hasTurn(session: Pick<SessionView, 'status'>): boolean {
  return session.status === 'running' || session.status === 'awaiting_permission';
}

/** Why turns fail, in words. */
const FAILURES: Record<string, string> = {
  exited: 'Claude Code exited',
  budget_exhausted: 'the budget is exhausted',
  claude_too_old: 'Claude Code is too old',
};

/** The end of a turn that did not complete. */
export function failureText(turn: number, reason: string | null): string {
  if (reason === 'interrupted') return `Turn ${turn} interrupted`;
  const why = reason === null ? null : (FAILURES[reason] ?? reason.slice(0, 60).replaceAll('_', ' '));
  return visible(`Turn ${turn} failed${why === null ? '' : `: ${why}`}`);
}

export const MODES = {
  default: 'reads without asking',
  acceptEdits: 'reads and edits without asking',
  plan: 'only plans',
} as const;
export const POLICIES = {
  own_course: 'Claude Code’s permission rules decide',
  ask_all: 'every call needs approval',
  approvals: 'only reads run without approval',
  plan: 'starts with a plan',
  allow_all: 'every call runs and is logged',
} as const;

/** The cost of a session so far, with the turn in progress. */
export function costSoFar({ cost_usd, turn_cost_usd }: Pick<SessionView, 'cost_usd' | 'turn_cost_usd'>): number {
  return cost_usd + (turn_cost_usd ?? 0);
}

/** The same, with all descendants. */
export function treeCostSoFar(session: SessionView, all: readonly SessionView[]): number {
  const below = new Set([session.id]);
  let running = session.turn_cost_usd ?? 0;
  // Parents come before their children in the list.
  for (const one of all) {
    if (one.answers_to.kind !== 'session' || !below.has(one.answers_to.id)) continue;
    below.add(one.id);
    running += one.turn_cost_usd ?? 0;
  }
  return session.tree.cost_usd + running;
}
