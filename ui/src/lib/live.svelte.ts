/**
 * The one connection of this tab on which the hub tells what happens: `GET /events`, read by fetch so that the token goes as a
 * header. It goes on by itself after the event it saw last, also after the hub was started anew. Decider wants to hear of
 * something subscribes; what it means is for them.
 */

import { Away, Refused, SignedOut, request } from './api';
import { hub } from './hub';
import { Blocks, type Block } from './sse';
import type { Approval, ApprovalChange, ApprovalFrame, ErrorFrame, Fields, HelloFrame, SessionFrame } from '../wire';

export interface Ears {
  /** The stream has begun, or begun again: look at everything that is told without a number. */
  begun?(hello: HelloFrame): void;
  approval?(what: ApprovalChange, approval: Approval): void;
  /** Something changed in some session. */
  changed?(): void;
  /** Something happened in the session that is followed. */
  event?(event: SessionFrame): void;
  delta?(delta: Fields): void;
  /** The session that is followed cannot be followed: it, or its old events, are gone. */
  lost?(error: Refused): void;
}

export interface Followed {
  session: string;
  turn: number;
  seq: number;
}

type State = 'connecting' | 'live' | 'away' | 'signed_out';

const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 3_000;
/** The hub sends a heartbeat every 3 s. A connection that has been silent for longer than this is dead, or the hub is frozen, whatever the socket says. */
const SILENCE = 10_000;

class Live {
  state = $state<State>('connecting');
  private ears = new Set<Ears>();
  private followed: Followed | null = null;
  private cursor: number | null = null;
  private abort: AbortController | null = null;
  private running = false;

  /** Hears what is told until the returned function is called. */
  listen(ears: Ears): () => void {
    this.ears.add(ears);
    return () => this.ears.delete(ears);
  }

  /** Follows one session too, from this event on; `null` follows none. */
  follow(followed: Followed | null): void {
    if (followed === null && this.followed === null) return;
    this.followed = followed;
    this.abort?.abort();
  }

  /** Begins, once; what was told before is not told again. */
  start(): void {
    if (this.running) return;
    this.running = true;
    this.state = 'connecting';
    void this.run();
  }

  /** Comes back at once, if it is away: the tab is looked at again, or the network is there. */
  hurry(): void {
    if (this.state === 'away') this.wake?.();
  }

  private wake: (() => void) | null = null;

  private async run(): Promise<void> {
    let pause = FIRST_PAUSE;
    for (;;) {
      const abort = new AbortController();
      this.abort = abort;
      try {
        await this.once(abort, () => {
          pause = FIRST_PAUSE;
          this.state = 'live';
        });
      } catch (error) {
        if (error instanceof SignedOut) {
          this.state = 'signed_out';
          this.running = false;
          return;
        }
        if (error instanceof Refused) {
          this.followed = null;
          this.tell((ears) => ears.lost?.(error));
        }
      }
      // Cut off by ourselves: somebody else is to be followed.
      if (abort.signal.aborted) continue;
      hub.doubt();
      this.state = 'away';
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pause);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.wake = null;
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  }

  private async once(abort: AbortController, begun: () => void): Promise<void> {
    // eslint-disable-next-line svelte/prefer-svelte-reactivity -- nothing on the page reads it
    const query = new URLSearchParams();
    if (this.cursor !== null) query.set('after', String(this.cursor));
    if (this.followed) {
      query.set('session', this.followed.session);
      query.set('turn', String(this.followed.turn));
      query.set('from_seq', String(this.followed.seq));
    }
    // A frozen hub accepts connections, and says nothing on them.
    const late = new AbortController();
    const patience = setTimeout(() => late.abort(), SILENCE);
    let response: Response;
    try {
      response = await request(`/events?${query}`, { signal: AbortSignal.any([abort.signal, late.signal]) });
    } finally {
      clearTimeout(patience);
    }
    if (!response.ok || !response.body) {
      const answer = (await response.json().catch(() => ({}))) as { error?: ErrorFrame };
      if (response.status < 500 && this.followed && answer.error)
        throw new Refused(answer.error.type, answer.error.message);
      throw new Away(`HTTP ${response.status}`);
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const blocks = new Blocks();
    let silence: ReturnType<typeof setTimeout> | undefined;
    try {
      for (;;) {
        clearTimeout(silence);
        silence = setTimeout(() => void reader.cancel().catch(() => {}), SILENCE);
        const { value, done } = await reader.read();
        // What was on its way when somebody else is followed is not theirs.
        if (done || abort.signal.aborted) return;
        for (const block of blocks.push(value)) this.hear(block, begun);
      }
    } finally {
      clearTimeout(silence);
      void reader.cancel().catch(() => {});
    }
  }

  private hear(block: Block, begun: () => void): void {
    switch (block.event) {
      case 'hello': {
        const hello = JSON.parse(block.data) as HelloFrame;
        begun();
        this.cursor = hello.cursor;
        this.tell((ears) => ears.begun?.(hello));
        break;
      }
      case 'approval': {
        const { type, approval } = JSON.parse(block.data) as ApprovalFrame;
        this.cursor = Number(block.id);
        this.tell((ears) => ears.approval?.(type, approval));
        break;
      }
      case 'changed':
        this.tell((ears) => ears.changed?.());
        break;
      case 'session': {
        const event = JSON.parse(block.data) as SessionFrame;
        if (this.followed) {
          this.followed.turn = event.turn;
          this.followed.seq = event.seq + 1;
        }
        this.tell((ears) => ears.event?.(event));
        break;
      }
      case 'delta': {
        const delta = JSON.parse(block.data) as Fields;
        this.tell((ears) => ears.delta?.(delta));
        break;
      }
      case 'error': {
        const { type, message, session } = JSON.parse(block.data) as ErrorFrame;
        throw session ? new Refused(type, message) : new Away(message);
      }
    }
  }

  private tell(say: (ears: Ears) => void): void {
    for (const ears of this.ears) say(ears);
  }
}

export const live = new Live();
