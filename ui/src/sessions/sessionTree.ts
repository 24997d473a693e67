/** The sessions as rows of a tree: which are shown, at which level, and which have children. */

import type { SessionView } from '../wire';
import { needsAttention } from './statusText';

export interface Row {
  session: SessionView;
  /** From 1. */
  level: number;
  /** Its position among its siblings, from 1, and their number. */
  place: number;
  siblings: number;
  /** Whether its children are shown; `undefined` without children. */
  open: boolean | undefined;
  /** A descendant matches the filter, but the session itself does not. */
  faint: boolean;
}

export interface TreeFilter {
  /** A part of the name, the title or the project. */
  letters: string;
  /** Only sessions that need attention. */
  attention: boolean;
  /** The collapsed sessions. A filter expands them. */
  folded: ReadonlySet<string>;
}

/** The parent of a session. */
function above(session: SessionView): string | null {
  return session.answers_to.kind === 'session' ? session.answers_to.id : null;
}

/** The rows: parents before children, siblings in the order of the hub's list. */
export function rows(sessions: readonly SessionView[], { letters, attention, folded }: TreeFilter): Row[] {
  const known = new Set(sessions.map((session) => session.id));
  const children = new Map<string | null, SessionView[]>();
  for (const session of sessions) {
    const parent = above(session);
    const under = parent !== null && known.has(parent) ? parent : null;
    const list = children.get(under);
    if (list) list.push(session);
    else children.set(under, [session]);
  }
  const filtered = letters !== '' || attention;
  const shown = filtered ? matching(sessions, letters.toLowerCase(), attention) : null;
  const out: Row[] = [];
  // A stack instead of recursion, because a tree may be deep.
  const stack: { list: SessionView[]; at: number; level: number }[] = [];
  const enter = (of: string | null, level: number) => {
    const all = children.get(of) ?? [];
    const list = shown ? all.filter((session) => shown.has(session.id)) : all;
    if (list.length > 0) stack.push({ list, at: 0, level });
  };
  enter(null, 1);
  for (let top = stack.at(-1); top; top = stack.at(-1)) {
    const session = top.list[top.at];
    if (!session) {
      stack.pop();
      continue;
    }
    top.at += 1;
    const below = (children.get(session.id) ?? []).some((child) => !shown || shown.has(child.id));
    const open = below ? filtered || !folded.has(session.id) : undefined;
    out.push({
      session,
      level: top.level,
      place: top.at,
      siblings: top.list.length,
      open,
      faint: shown?.get(session.id) === false,
    });
    if (open) enter(session.id, top.level + 1);
  }
  return out;
}

/** The text that the filter searches. */
function searched({ name, title, project }: SessionView): string {
  return `${name} ${title ?? ''} ${project?.name ?? ''}`.toLowerCase();
}

/** The sessions that match (true), and their ancestors (false). */
function matching(sessions: readonly SessionView[], letters: string, attention: boolean): Map<string, boolean> {
  const byId = new Map(sessions.map((session) => [session.id, session]));
  const shown = new Map<string, boolean>();
  for (const session of sessions) {
    if (!searched(session).includes(letters) || (attention && !needsAttention(session))) continue;
    shown.set(session.id, true);
    for (let at = above(session); at !== null && !shown.has(at);) {
      const parent = byId.get(at);
      if (!parent) break;
      shown.set(at, false);
      at = above(parent);
    }
  }
  return shown;
}

/** The sessions that need attention: those with open approvals first, then the oldest first. */
export function needingAttention(sessions: readonly SessionView[]): SessionView[] {
  const asks = (session: SessionView) => (session.pending_approvals > 0 ? 0 : 1);
  return sessions.filter(needsAttention).sort((a, b) => asks(a) - asks(b) || a.created_at - b.created_at);
}

/** The sessions of trees that still work or wait for something, and those of trees in which everything is over. */
export function apart(sessions: readonly SessionView[]): { active: SessionView[]; finished: SessionView[] } {
  const byId = new Map(sessions.map((session) => [session.id, session]));
  const rootOf = new Map<string, string>();
  const root = (session: SessionView): string => {
    const path: string[] = [];
    let at: SessionView = session;
    for (;;) {
      const known = rootOf.get(at.id);
      const parent = above(at);
      const next = parent === null ? undefined : byId.get(parent);
      if (known !== undefined || next === undefined || path.length > sessions.length) {
        const top = known ?? at.id;
        for (const id of [...path, at.id]) rootOf.set(id, top);
        return top;
      }
      path.push(at.id);
      at = next;
    }
  };
  const working = new Set(sessions.filter((session) => !isOver(session)).map(root));
  const active = sessions.filter((session) => working.has(root(session)));
  return { active, finished: sessions.filter((session) => !working.has(root(session))) };
}

/** Whether a session has done its work: its last turn has ended and nothing is open. */
function isOver(session: SessionView): boolean {
  return ['complete', 'failed', 'interrupted'].includes(session.status) && session.pending_approvals === 0;
}
