/**
 * Reads the events of a session by pages, the latest first, and takes what is told live after them: each event once, none left
 * out. It knows where reading stands at both ends; what the events mean is for `fold`, and how they are fetched for whoever makes it.
 */

import { HubError } from '../stores/api';
import type { Event, Json, Params, Result, SessionFrame } from '../wire';
import type { StoredEvent } from './timeline';

/** A page of `claudecode.poll`. */
export type Page = Pick<Result<'claudecode.poll'>, 'turn' | 'events' | 'total_events'>;

export type PageRequest = Pick<Params<'claudecode.poll'>, 'turn'> & { from_seq: number; limit: number };

/** A place between events: before event `seq` of turn `turn`. */
export interface EventPosition {
  turn: number;
  seq: number;
}

/** So many events are read at a time. */
export const PAGE = 200;
/** Texts are kept to this length; the whole of one is fetched when somebody wants to see it. */
export const KEPT = 8192;

/** Where nothing is any more: asks only how many events there are. */
const PAST_THE_END = Number.MAX_SAFE_INTEGER;

export class EventPager {
  /** All from here… */
  low: EventPosition = { turn: 0, seq: 0 };
  /** …to here has been read. */
  high: EventPosition = { turn: 0, seq: 0 };
  /** Why there is nothing further up, if it is not because there never was. */
  gone: string | null = null;

  constructor(private poll: (wanted: PageRequest) => Promise<Page>) {}

  /** Whether there may be something before what was read. */
  get more(): boolean {
    return this.gone === null && (this.low.seq > 0 || this.low.turn > 1);
  }

  /** Reads the last page of the latest turn, or of a turn further up while that is `turn`. */
  async begin(): Promise<StoredEvent[]> {
    const { turn, total_events } = await this.poll({ from_seq: PAST_THE_END, limit: 1 });
    this.low = this.high = { turn, seq: total_events };
    if (total_events === 0) return [];
    const page = await this.page(turn, Math.max(0, total_events - PAGE), PAGE);
    this.low = { turn, seq: page[0]?.seq ?? total_events };
    this.high = { turn, seq: (page.at(-1)?.seq ?? total_events - 1) + 1 };
    return page;
  }

  /** Reads the page before what was read, of the turn before if need be. */
  async earlier(): Promise<StoredEvent[]> {
    try {
      while (this.more) {
        if (this.low.seq === 0) {
          const turn = this.low.turn - 1;
          const { total_events } = await this.poll({ turn, from_seq: PAST_THE_END, limit: 1 });
          this.low = { turn, seq: total_events };
          continue;
        }
        const { turn, seq } = this.low;
        const from = Math.max(0, seq - PAGE);
        const page = (await this.page(turn, from, seq - from)).filter((event) => event.seq < seq);
        this.low = { turn, seq: from };
        if (page.length > 0) return page;
      }
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      this.gone = error.message;
    }
    return [];
  }

  /** Something was told live: what is to be shown of it, `old` if it is known, `gap` if something before it was not heard. */
  hear(told: SessionFrame): StoredEvent | 'old' | 'gap' {
    const { high } = this;
    if (told.turn < high.turn || (told.turn === high.turn && told.seq < high.seq)) return 'old';
    const follows = told.turn === high.turn ? told.seq === high.seq : told.seq === 0;
    if (!follows) return 'gap';
    if (this.low.turn === 0) this.low = { turn: told.turn, seq: 0 };
    this.high = { turn: told.turn, seq: told.seq + 1 };
    return shortened(told);
  }

  private async page(turn: number, from_seq: number, limit: number): Promise<StoredEvent[]> {
    const { events } = await this.poll({ turn, from_seq, limit });
    return events.map((event) => ({ turn, ...event }));
  }
}

/** An event told live comes whole; it is kept no longer than one that was read by page. */
export function shortened(told: SessionFrame): StoredEvent {
  let cut = false;
  const shorten = (value: Json): Json => {
    if (typeof value === 'string') {
      if (value.length <= KEPT) return value;
      cut = true;
      return value.slice(0, KEPT);
    }
    if (Array.isArray(value)) return value.map(shorten);
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shorten(inner)]));
  };
  const event = shorten(told.event as Json) as Event;
  return {
    turn: told.turn,
    seq: told.seq,
    at: told.at,
    event: cut ? event : told.event,
    ...(cut ? { truncated: true } : {}),
  };
}
