/**
 * Answers on their way. One place sends them all, and keeps the rule that nobody answers what has not been looked at: a question has to
 * have been on the screen for a moment before a key or a click counts for it.
 */

import { SvelteMap, SvelteSet } from 'svelte/reactivity';
import { actorName } from '../stores/actorName';
import { Disconnected, call, HubError, SignedOut } from '../stores/api';
import { approvals } from '../stores/approvals.svelte';
import { live } from '../stores/live.svelte';
import type { Answered, Answer as WireAnswer, Approval } from '../wire';
import { callWords, confirmation, tooLate } from './confirmation';

/** So long has an approval been shown before it can be answered, in milliseconds. */
export const LOOKED_AT = 400;

export const EARLY = 'This approval has only just appeared: look at it, then answer.';
export const DISCONNECTED = 'Disconnected: answers are sent again once the hub is back.';

/** An answer as `loopback.respond` takes it, without the approval it answers. */
export type Answer = Omit<WireAnswer, 'approval_id' | 'digest'>;

/** How much of an input is shown: what belongs to it is still being read, parts of it are left out, its end is below the edge of the view, or all of it has been on the screen. */
export type InFullState = { kind: 'reading' } | { kind: 'cut'; left: number } | { kind: 'below' } | { kind: 'shown' };

/** What became of one of several. */
export interface Outcome {
  approval: Approval;
  good: boolean;
  text: string;
}

const NOT_REPORTED = 'the hub did not report the outcome';

/** So many at once; the rest is sent after them. */
const AT_ONCE = 100;

class Answering {
  /** On their way. */
  inFlight = new SvelteSet<string>();
  /** What went wrong with the last answer to a question. */
  problems = new SvelteMap<string, string>();
  /** What was said last. */
  notice = $state('');
  /** The answer that counted last, in words. */
  confirmed = $state('');
  /** The question that has been looked at for long enough. */
  seen = $state<string | null>(null);
  private shown: { id: string; whole: boolean; since: number } | null = null;
  private early = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    // What was on the screen while nobody looked at the tab has not been looked at.
    document.addEventListener('visibilitychange', () => {
      const { id, whole } = this.shown ?? { id: null, whole: true };
      this.shown = null;
      this.show(id, whole);
    });
    // A key that came too early may be the first of a word: what follows it, without a pause, is meant no more for this question.
    addEventListener('keydown', (event) => this.early && event.key.length === 1 && this.begin(), { capture: true });
  }

  /** This question is on the screen, in full or not yet; null: none is. */
  show(id: string | null, whole = true): void {
    if (this.shown?.id === id && this.shown?.whole === whole) return;
    this.shown = id === null ? null : { id, whole, since: 0 };
    this.begin();
  }

  /** From now on it is looked at. */
  private begin(): void {
    clearTimeout(this.timer);
    this.seen = null;
    if (this.shown === null) return;
    const { id } = this.shown;
    this.shown.since = performance.now();
    this.timer = setTimeout(() => this.markSeen(id), LOOKED_AT);
  }

  private markSeen(id: string): void {
    this.seen = id;
    this.early = false;
    if (this.notice === EARLY) this.notice = '';
  }

  /** Whether this question has been looked at; if not, says so. */
  wasSeen(id: string): boolean {
    if (this.shown?.id === id && performance.now() - this.shown.since >= LOOKED_AT) return true;
    this.notice = EARLY;
    this.early = true;
    this.begin();
    return false;
  }

  /** Sends an answer; true if it counts. */
  async answer(approval: Approval, answer: Answer): Promise<boolean> {
    if (this.inFlight.has(approval.id)) return false;
    this.confirmed = '';
    return this.attempt(approval.id, async () => {
      const [answered] = [await call('loopback.respond', { ...identified(approval), ...answer })].flat();
      if (answered === undefined) throw new Error(NOT_REPORTED);
      const settled = answered.type === 'ok' ? (answered.settled ?? []) : [];
      this.over(approval, answer.approve, answered);
      if (answered.type === 'ok') this.confirmed = confirmation(approval, answer, settled.length);
      if (answered.type === 'already_resolved') this.confirmed = tooLate(answered.status, answered.decision, actorName);
      // One moves on to what is still open, not to what the rule has just answered.
      for (const other of settled.map((id) => approvals.get(id)))
        if (other) approvals.update({ ...other, status: answer.approve ? 'allowed' : 'denied' });
      if (answered.type === 'error') throw new Error(answered.message);
      return answered.type === 'ok';
    });
  }

  /** Sends the same answer to several; each stands for itself. */
  async answerAll(list: Approval[], answer: Answer): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    this.confirmed = '';
    if (live.state !== 'live') return list.map((approval) => ({ approval, good: false, text: DISCONNECTED }));
    for (let from = 0; from < list.length; from += AT_ONCE) {
      const now = list.slice(from, from + AT_ONCE);
      for (const approval of now) this.inFlight.add(approval.id);
      try {
        const decisions = now.map((approval) => ({ ...identified(approval), ...answer }));
        const answered = [await call('loopback.respond', { decisions })].flat();
        const byId = new Map(answered.map((one) => [one.approval_id, one]));
        for (const approval of now) outcomes.push(this.outcome(approval, answer, byId.get(approval.id)));
      } catch (error) {
        for (const approval of now) outcomes.push({ approval, good: false, text: words(error) });
      } finally {
        for (const approval of now) this.inFlight.delete(approval.id);
      }
    }
    const good = outcomes.filter((outcome) => outcome.good).length;
    this.confirmed = `${answer.approve ? 'Allowed' : 'Denied'} ${good} of ${outcomes.length}${answer.message === undefined ? '' : `. Reason: ${answer.message}`}`;
    return outcomes;
  }

  async extend(approval: Approval, secs: number): Promise<boolean> {
    return this.attempt(approval.id, async () => {
      const result = await call('loopback.extend', { approval_id: approval.id, secs });
      if (result.type !== 'ok') throw new Error('It is already resolved.');
      const now = approvals.get(approval.id);
      if (now) approvals.update({ ...now, expires_at: result.expires_at });
      this.confirmed = `Extended: ${callWords(approval)}`;
      return true;
    });
  }

  async escalate(approval: Approval, opinion: string): Promise<boolean> {
    return this.attempt(approval.id, async () => {
      const result = await call('loopback.escalate', {
        approval_id: approval.id,
        ...(opinion.trim() === '' ? {} : { opinion: opinion.trim() }),
      });
      if (result.type !== 'ok') throw new Error('It is already resolved.');
      const now = approvals.get(approval.id);
      if (now) approvals.update({ ...now, asked_of: result.asked_of });
      this.confirmed = `Escalated: ${callWords(approval)}`;
      return true;
    });
  }

  private async attempt(id: string, act: () => Promise<boolean>): Promise<boolean> {
    this.problems.delete(id);
    if (live.state !== 'live') {
      this.problems.set(id, DISCONNECTED);
      return false;
    }
    this.inFlight.add(id);
    try {
      return await act();
    } catch (error) {
      this.problems.set(id, words(error));
      return false;
    } finally {
      this.inFlight.delete(id);
    }
  }

  private outcome(approval: Approval, answer: Answer, answered: Answered | undefined): Outcome {
    if (answered === undefined) return { approval, good: false, text: NOT_REPORTED };
    this.over(approval, answer.approve, answered);
    if (answered.type === 'ok') return { approval, good: true, text: answer.approve ? 'allowed' : 'denied' };
    if (answered.type === 'already_resolved')
      return { approval, good: false, text: tooLate(answered.status, answered.decision, actorName) };
    return { approval, good: false, text: answered.message };
  }

  /** What is over is out of the list at once; who it was the hub tells in a moment. */
  private over(approval: Approval, approve: boolean, answered: Answered): void {
    if (answered.type === 'error' || approvals.get(approval.id) === undefined) return;
    if (answered.type === 'ok') approvals.update({ ...approval, status: approve ? 'allowed' : 'denied' });
    else
      approvals.update({
        ...approval,
        status: answered.status,
        ...(answered.decision ? { decision: answered.decision } : {}),
      });
  }
}

function identified(approval: Approval): { approval_id: string; digest?: string } {
  return { approval_id: approval.id, ...(approval.digest === undefined ? {} : { digest: approval.digest }) };
}

function words(error: unknown): string {
  if (error instanceof HubError) return error.message;
  if (error instanceof Disconnected)
    return 'Disconnected. The approval stays open; answer it again once the hub is back.';
  if (error instanceof SignedOut) return 'You are signed out.';
  return error instanceof Error ? error.message : String(error);
}

export const answering = new Answering();
