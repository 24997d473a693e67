/** What the hub says of sessions, in plain words. The words are ours: nothing here is written by a child. */

import type { Attention, SessionView, Status } from '../wire';

/** How much it matters to somebody who looks: it waits for an answer, it is in trouble, it works, it rests. */
export type Tone = 'asks' | 'trouble' | 'works' | 'rests';

const ATTENTION: Record<Attention, { words: string; tone: Tone }> = {
  permission: { words: 'asks to use a tool', tone: 'asks' },
  question: { words: 'asks a question', tone: 'asks' },
  plan: { words: 'shows a plan', tone: 'asks' },
  budget: { words: 'has used up its limit', tone: 'asks' },
  rate_limited: { words: 'rate-limited: the API wants it to wait', tone: 'trouble' },
  api_retry: { words: 'the API failed: it tries again', tone: 'trouble' },
  stalled: { words: 'stalled: nothing heard from the model', tone: 'trouble' },
};

const STATUS: Record<Status, { words: string; tone: Tone }> = {
  idle: { words: 'not started', tone: 'rests' },
  running: { words: 'working', tone: 'works' },
  awaiting_permission: { words: 'waits for an answer', tone: 'asks' },
  complete: { words: 'done', tone: 'rests' },
  failed: { words: 'failed', tone: 'trouble' },
  interrupted: { words: 'interrupted', tone: 'rests' },
};

export interface State {
  words: string;
  tone: Tone;
}

/** How a session stands: what keeps it from going on before all else. */
export function sessionState(session: Pick<SessionView, 'status' | 'attention'>): State {
  const known = (session.attention ?? []).flatMap((one) => ATTENTION[one] ?? []);
  if (known.length === 0) return STATUS[session.status] ?? { words: String(session.status), tone: 'rests' };
  const tone = known.some((one) => one.tone === 'asks') ? 'asks' : 'trouble';
  return { words: known.map((one) => one.words).join(', '), tone };
}

/** Whether somebody should look at it. */
export function needsAttention(session: Pick<SessionView, 'status' | 'attention'>): boolean {
  const { tone } = sessionState(session);
  return tone === 'asks' || tone === 'trouble';
}

/** Whether it has a turn in progress. */
export function hasTurn(session: Pick<SessionView, 'status'>): boolean {
  return session.status === 'running' || session.status === 'awaiting_permission';
}

export const MODES = {
  default: 'reading runs, the rest asks',
  acceptEdits: 'edits run as well',
  plan: 'it plans only',
} as const;
export const POLICIES = {
  own_course: 'nothing is said: Claude Code asks as it would',
  ask_all: 'every call asks',
  approvals: 'reading runs, the rest asks',
  plan: 'it begins with a plan',
  allow_all: 'every call runs and is recorded',
} as const;
