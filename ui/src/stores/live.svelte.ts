/**
 * The live stream of this tab: one connection to `GET /events`, read by `fetch` so that the token is sent as a header. After a
 * disconnect it reconnects and continues after the last event it received. Other stores subscribe to it and interpret the frames.
 */

import { SseParser, type SseEvent } from '../pure/sse';
import type { Approval, ApprovalChange, ApprovalFrame, ErrorFrame, Fields, HelloFrame, SessionFrame } from '../wire';
import { Disconnected, HubError, request, SignedOut } from './api';
import { hub } from './hub';

export interface Listener {
  /** The stream is connected, or connected again. State that has no event number must be read again. */
  connected?(hello: HelloFrame): void;
  approval?(change: ApprovalChange, approval: Approval): void;
  /** Something changed in some session. */
  changed?(): void;
  /** An event of the followed session. */
  event?(event: SessionFrame): void;
  /** Text that the agent of the followed session is generating. */
  delta?(delta: Fields): void;
  /** The followed session can no longer be followed: the session or its old events were deleted. */
  lost?(error: HubError): void;
}

export interface Followed {
  session: string;
  turn: number;
  seq: number;
}

type State = 'connecting' | 'live' | 'disconnected' | 'signed_out';

const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 3_000;
/** The hub sends a heartbeat every 3 s. After this much silence the connection is dead or the hub is frozen. */
const SILENCE = 10_000;

class Live {
  state = $state<State>('connecting');
  private listeners = new Set<Listener>();
  private followed: Followed | null = null;
  private cursor: number | null = null;
  private abort: AbortController | null = null;
  private running = false;

  /** Subscribes until the returned function is called. */
  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Follows one session too, from this event on; `null` follows none. */
  follow(followed: Followed | null): void {
    if (followed === null && this.followed === null) return;
    this.followed = followed;
    this.abort?.abort();
  }

  start(): void {
    if (this.running) return;
    this.running = true;
    this.state = 'connecting';
    void this.run();
  }

  /** Connects again with the current token. */
  restart(): void {
    this.cursor = null;
    if (this.running) this.abort?.abort();
    else this.start();
  }

  /** Reconnects at once instead of after the pause: the tab has the focus again, or the network is back. */
  reconnectNow(): void {
    if (this.state === 'disconnected') this.endPause?.();
  }

  private endPause: (() => void) | null = null;

  private async run(): Promise<void> {
    let pause = FIRST_PAUSE;
    for (;;) {
      const abort = new AbortController();
      this.abort = abort;
      try {
        await this.connect(abort, () => {
          pause = FIRST_PAUSE;
          this.state = 'live';
        });
      } catch (error) {
        if (error instanceof SignedOut) {
          this.state = 'signed_out';
          this.running = false;
          return;
        }
        if (error instanceof HubError) {
          this.followed = null;
          this.publish((listener) => listener.lost?.(error));
        }
      }
      // `follow` aborted the connection to follow another session.
      if (abort.signal.aborted) continue;
      hub.doubt();
      this.state = 'disconnected';
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pause);
        this.endPause = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.endPause = null;
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  }

  /** Connects, and reads until the connection ends. */
  private async connect(abort: AbortController, connected: () => void): Promise<void> {
    // eslint-disable-next-line svelte/prefer-svelte-reactivity -- nothing on the page reads it
    const query = new URLSearchParams();
    if (this.cursor !== null) query.set('after', String(this.cursor));
    if (this.followed) {
      query.set('session', this.followed.session);
      query.set('turn', String(this.followed.turn));
      query.set('from_seq', String(this.followed.seq));
    }
    // A frozen hub accepts connections, but never responds.
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), SILENCE);
    let response: Response;
    try {
      response = await request(`/events?${query}`, { signal: AbortSignal.any([abort.signal, timeout.signal]) });
    } finally {
      clearTimeout(timer);
    }
    if (!response.ok || !response.body) {
      const answer = (await response.json().catch(() => ({}))) as { error?: ErrorFrame };
      if (response.status < 500 && this.followed && answer.error)
        throw new HubError(answer.error.type, answer.error.message);
      throw new Disconnected(`HTTP ${response.status}`);
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new SseParser();
    let silence: ReturnType<typeof setTimeout> | undefined;
    try {
      for (;;) {
        clearTimeout(silence);
        silence = setTimeout(() => void reader.cancel().catch(() => {}), SILENCE);
        const { value, done } = await reader.read();
        // After an abort, the remaining events belong to the session that was followed before.
        if (done || abort.signal.aborted) return;
        for (const event of parser.push(value)) this.handle(event, connected);
      }
    } finally {
      clearTimeout(silence);
      void reader.cancel().catch(() => {});
    }
  }

  private handle({ id, event, data }: SseEvent, connected: () => void): void {
    switch (event) {
      case 'hello': {
        const hello = JSON.parse(data) as HelloFrame;
        connected();
        this.cursor = hello.cursor;
        this.publish((listener) => listener.connected?.(hello));
        break;
      }
      case 'approval': {
        const { type, approval } = JSON.parse(data) as ApprovalFrame;
        this.cursor = Number(id);
        this.publish((listener) => listener.approval?.(type, approval));
        break;
      }
      case 'changed':
        this.publish((listener) => listener.changed?.());
        break;
      case 'session': {
        const frame = JSON.parse(data) as SessionFrame;
        if (this.followed) {
          this.followed.turn = frame.turn;
          this.followed.seq = frame.seq + 1;
        }
        this.publish((listener) => listener.event?.(frame));
        break;
      }
      case 'delta': {
        const delta = JSON.parse(data) as Fields;
        this.publish((listener) => listener.delta?.(delta));
        break;
      }
      case 'error': {
        const { type, message, session } = JSON.parse(data) as ErrorFrame;
        throw session ? new HubError(type, message) : new Disconnected(message);
      }
    }
  }

  private publish(notify: (listener: Listener) => void): void {
    for (const listener of this.listeners) notify(listener);
  }
}

export const live = new Live();
