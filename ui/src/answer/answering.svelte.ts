/**
 * Sends answers to the hub. It enforces that an approval was visible for a moment before a key or a click can answer it.
 */

import { SvelteMap, SvelteSet } from 'svelte/reactivity';
import { actorName } from '../stores/actorName';
import { Disconnected, call, HubError, SignedOut } from '../stores/api';
import { approvals } from '../stores/approvals.svelte';
import { live } from '../stores/live.svelte';
import type { Answered, Answer as WireAnswer, Approval } from '../wire';
import { preferences } from '../stores/preferences.svelte';
import { announcement, callText, confirmation, tooLate } from './confirmation';

/** How long an approval must be visible before it can be answered, in milliseconds. */
export const VISIBLE_FOR = 400;

export const EARLY = 'This approval has just appeared. Read it, then answer.';
export const DISCONNECTED = 'Disconnected. You can answer when the hub is connected again.';

/** An answer as `loopback.respond` takes it, without the approval it answers. */
export type Answer = Omit<WireAnswer, 'approval_id' | 'digest'>;

/** How much of an input is shown: its context is still loading, parts are hidden, its end is below the visible area, or all of it has been visible. */
export type ShownState = { kind: 'reading' } | { kind: 'cut'; left: number } | { kind: 'below' } | { kind: 'shown' };

/** The outcome of one of several answers. */
export interface Outcome {
  approval: Approval;
  good: boolean;
  text: string;
}

/** How a confirmation is shown: something was allowed, something else happened, or something went wrong. */
export type Tone = 'good' | 'neutral' | 'bad';

/** An answer that is not sent yet, and can be taken back. */
export interface Held {
  key: number;
  approval: string;
  /** What happens when it is sent. */
  text: string;
  /** The call in short. */
  call: string;
  /** When it is sent, in seconds. */
  at: number;
}

const NOT_REPORTED = 'the hub did not report the outcome';

/** Answers per request. */
const AT_ONCE = 100;

class Answering {
  /** The approvals whose answers are being sent. */
  inFlight = new SvelteSet<string>();
  /** The error of the last answer, by approval. */
  problems = new SvelteMap<string, string>();
  /** The answers that wait before they are sent, oldest first. */
  held = $state.raw<Held[]>([]);
  private timers = new Map<number, ReturnType<typeof setTimeout>>();
  private keys = 0;
  /** A notice for the person. */
  notice = $state('');
  /** The confirmation of the last answer; '' if there is none. */
  confirmed = $state('');
  tone = $state<Tone>('good');
  /** The approval that has been visible for long enough. */
  seen = $state<string | null>(null);
  private shown: { id: string; whole: boolean; since: number } | null = null;
  private early = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    // Time in a hidden tab does not count.
    document.addEventListener('visibilitychange', () => {
      const { id, whole } = this.shown ?? { id: null, whole: true };
      this.shown = null;
      this.show(id, whole);
    });
    // A key that came too early may be the start of a typed word: the keys that follow without a pause do not answer either.
    addEventListener('keydown', (event) => this.early && event.key.length === 1 && this.startTimer(), {
      capture: true,
    });
    // An answer that waits would be lost with the page. The approval would stay open.
    addEventListener('beforeunload', (event) => this.held.length > 0 && event.preventDefault());
  }

  /** Whether an answer to this approval waits before it is sent. */
  isHeld(id: string): boolean {
    return this.held.some((held) => held.approval === id);
  }

  /** Takes an answer back, the last one unless another is named. Returns the approval, which is open again. */
  undo(key = this.held.at(-1)?.key): string | null {
    const held = this.held.find((one) => one.key === key);
    if (held === undefined) return null;
    this.drop(held.key);
    this.confirm('neutral', `Undone, nothing was sent: ${held.call}`);
    return held.approval;
  }

  /** Shows a confirmation. */
  confirm(tone: Tone, text: string): void {
    this.tone = tone;
    this.confirmed = text;
  }

  private drop(key: number): void {
    clearTimeout(this.timers.get(key));
    this.timers.delete(key);
    this.held = this.held.filter((one) => one.key !== key);
  }

  /** This approval is visible, with its whole input or not yet; null if none is. */
  show(id: string | null, whole = true): void {
    if (this.shown?.id === id && this.shown?.whole === whole) return;
    this.shown = id === null ? null : { id, whole, since: 0 };
    this.startTimer();
  }

  /** Starts the time that the approval must be visible. */
  private startTimer(): void {
    clearTimeout(this.timer);
    this.seen = null;
    if (this.shown === null) return;
    const { id } = this.shown;
    this.shown.since = performance.now();
    this.timer = setTimeout(() => this.markSeen(id), VISIBLE_FOR);
  }

  private markSeen(id: string): void {
    this.seen = id;
    this.early = false;
    if (this.notice === EARLY) this.notice = '';
  }

  /** Whether this approval was visible for long enough; if not, shows a notice. */
  wasSeen(id: string): boolean {
    if (this.shown?.id === id && performance.now() - this.shown.since >= VISIBLE_FOR) return true;
    this.notice = EARLY;
    this.early = true;
    this.startTimer();
    return false;
  }

  /**
   * Sends an answer, or holds it while the person may take it back. Returns whether it took effect or is held. If a held answer fails
   * later, the approval is still open and shows the error.
   */
  async answer(approval: Approval, answer: Answer): Promise<boolean> {
    if (this.inFlight.has(approval.id) || this.isHeld(approval.id)) return false;
    this.confirmed = '';
    const secs = preferences.get('undoSecs');
    if (secs === 0) return this.send(approval, answer);
    const key = (this.keys += 1);
    const text = announcement(approval, answer);
    const held = { key, approval: approval.id, text, call: callText(approval), at: Date.now() / 1000 + secs };
    this.problems.delete(approval.id);
    this.held = [...this.held, held];
    const release = async (): Promise<void> => {
      this.drop(key);
      if (!(await this.send(approval, answer)) && this.confirmed === '')
        this.confirm('bad', `Not answered: ${callText(approval)}. ${this.problems.get(approval.id) ?? ''}`);
    };
    this.timers.set(
      key,
      setTimeout(() => void release(), secs * 1000),
    );
    return true;
  }

  private async send(approval: Approval, answer: Answer): Promise<boolean> {
    return this.attempt(approval.id, async () => {
      const [answered] = [await call('loopback.respond', { ...identified(approval), ...answer })].flat();
      if (answered === undefined) throw new Error(NOT_REPORTED);
      const resolved = answered.type === 'ok' ? (answered.settled ?? []) : [];
      this.remove(approval, answer.approve, answered);
      if (answered.type === 'ok')
        this.confirm(answer.approve ? 'good' : 'neutral', confirmation(approval, answer, resolved.length));
      if (answered.type === 'already_resolved')
        this.confirm('bad', tooLate(answered.status, answered.decision, actorName));
      // The next approval to show must not be one that the new rule has just resolved.
      for (const other of resolved.map((id) => approvals.get(id)))
        if (other) approvals.update({ ...other, status: answer.approve ? 'allowed' : 'denied' });
      if (answered.type === 'error') throw new Error(answered.message);
      return answered.type === 'ok';
    });
  }

  /** Sends the same answer to several approvals. Each has an outcome of its own. */
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
        for (const approval of now) outcomes.push({ approval, good: false, text: problemText(error) });
      } finally {
        for (const approval of now) this.inFlight.delete(approval.id);
      }
    }
    const good = outcomes.filter((outcome) => outcome.good).length;
    this.confirm(
      good < outcomes.length ? 'bad' : answer.approve ? 'good' : 'neutral',
      `${answer.approve ? 'Allowed' : 'Denied'} ${good} of ${outcomes.length}${answer.message === undefined ? '' : `. Reason: ${answer.message}`}`,
    );
    return outcomes;
  }

  async extend(approval: Approval, secs: number): Promise<boolean> {
    return this.attempt(approval.id, async () => {
      const result = await call('loopback.extend', { approval_id: approval.id, secs });
      if (result.type !== 'ok') throw new Error('This approval is already resolved.');
      const now = approvals.get(approval.id);
      if (now) approvals.update({ ...now, expires_at: result.expires_at });
      this.confirm('neutral', `Extended: ${callText(approval)}`);
      return true;
    });
  }

  async escalate(approval: Approval, opinion: string): Promise<boolean> {
    return this.attempt(approval.id, async () => {
      const result = await call('loopback.escalate', {
        approval_id: approval.id,
        ...(opinion.trim() === '' ? {} : { opinion: opinion.trim() }),
      });
      if (result.type !== 'ok') throw new Error('This approval is already resolved.');
      const now = approvals.get(approval.id);
      if (now) approvals.update({ ...now, asked_of: result.asked_of });
      this.confirm('neutral', `Escalated: ${callText(approval)}`);
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
      this.problems.set(id, problemText(error));
      return false;
    } finally {
      this.inFlight.delete(id);
    }
  }

  private outcome(approval: Approval, answer: Answer, answered: Answered | undefined): Outcome {
    if (answered === undefined) return { approval, good: false, text: NOT_REPORTED };
    this.remove(approval, answer.approve, answered);
    if (answered.type === 'ok') return { approval, good: true, text: answer.approve ? 'allowed' : 'denied' };
    if (answered.type === 'already_resolved')
      return { approval, good: false, text: tooLate(answered.status, answered.decision, actorName) };
    return { approval, good: false, text: answered.message };
  }

  /** Removes a resolved approval from the list at once. The stream reports soon who resolved it. */
  private remove(approval: Approval, approve: boolean, answered: Answered): void {
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

function problemText(error: unknown): string {
  if (error instanceof HubError) return error.message;
  if (error instanceof Disconnected)
    return 'Disconnected. The approval may still be open. Answer it again after the hub is connected.';
  if (error instanceof SignedOut) return 'You are signed out.';
  return error instanceof Error ? error.message : String(error);
}

export const answering = new Answering();
