/** Texts for the status of sessions, permission modes and policies. */

import type { Attention, SessionView, Status } from '../wire';

/** The urgency of a state: it waits for an approval, has a problem, is running, or is at rest. */
export type Tone = 'asks' | 'trouble' | 'works' | 'rests';

const ATTENTION: Record<Attention, { words: string; tone: Tone }> = {
  permission: { words: 'waiting for approval of a tool call', tone: 'asks' },
  question: { words: 'asking a question', tone: 'asks' },
  plan: { words: 'presenting a plan', tone: 'asks' },
  budget: { words: 'budget used up', tone: 'asks' },
  rate_limited: { words: 'rate-limited by the API', tone: 'trouble' },
  api_retry: { words: 'API error, retrying', tone: 'trouble' },
  stalled: { words: 'stalled: no response from the model', tone: 'trouble' },
};

const STATUS: Record<Status, { words: string; tone: Tone }> = {
  idle: { words: 'not started', tone: 'rests' },
  running: { words: 'running', tone: 'works' },
  awaiting_permission: { words: 'waiting for approval', tone: 'asks' },
  complete: { words: 'complete', tone: 'rests' },
  failed: { words: 'failed', tone: 'trouble' },
  interrupted: { words: 'interrupted', tone: 'rests' },
};

export interface State {
  words: string;
  tone: Tone;
}

/** The state of a session. What blocks it takes precedence over its status. */
export function sessionState(session: Pick<SessionView, 'status' | 'attention'>): State {
  const known = (session.attention ?? []).flatMap((one) => ATTENTION[one] ?? []);
  if (known.length === 0) return STATUS[session.status] ?? { words: String(session.status), tone: 'rests' };
  const tone = known.some((one) => one.tone === 'asks') ? 'asks' : 'trouble';
  return { words: known.map((one) => one.words).join(', '), tone };
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

export const MODES = {
  default: 'reads without asking',
  acceptEdits: 'reads and edits without asking',
  plan: 'only plans',
} as const;
export const POLICIES = {
  own_course: 'Claude Code’s permission rules decide',
  ask_all: 'every call needs an approval',
  approvals: 'only reads run without an approval',
  plan: 'starts with a plan',
  allow_all: 'every call runs and is logged',
} as const;
