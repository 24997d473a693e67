/**
 * Loads the events of a session in pages, latest first, and accepts live events after them: each event once, without gaps. It tracks the
 * loaded range. `timeline` interprets the events, and the caller provides the request.
 */

import { HubError } from '../stores/api';
import type { Event, Json, Params, Result, SessionFrame } from '../wire';
import type { StoredEvent } from './timeline';

/** A page of `claudecode.poll`. */
export type Page = Pick<Result<'claudecode.poll'>, 'turn' | 'events' | 'total_events'>;

export type PageRequest = Pick<Params<'claudecode.poll'>, 'turn'> & { from_seq: number; limit: number };

/** A position between events: before event `seq` of turn `turn`. */
export interface EventPosition {
  turn: number;
  seq: number;
}

/** Events per page. */
export const PAGE = 200;
/** Texts are kept up to this length; the whole text is loaded on request. */
export const KEPT = 8192;

/** A position after all events: the request only returns their number. */
const PAST_THE_END = Number.MAX_SAFE_INTEGER;

export class EventPager {
  /** The start of the loaded range. */
  low: EventPosition = { turn: 0, seq: 0 };
  /** The end of the loaded range. */
  high: EventPosition = { turn: 0, seq: 0 };
  /** Why earlier events are not available, if they were deleted. */
  gone: string | null = null;

  constructor(private poll: (wanted: PageRequest) => Promise<Page>) {}

  /** Whether there may be earlier events. */
  get more(): boolean {
    return this.gone === null && (this.low.seq > 0 || this.low.turn > 1);
  }

  /** Loads the last page of the latest turn. */
  async latest(): Promise<StoredEvent[]> {
    const { turn, total_events } = await this.poll({ from_seq: PAST_THE_END, limit: 1 });
    this.low = this.high = { turn, seq: total_events };
    if (total_events === 0) return [];
    const page = await this.page(turn, Math.max(0, total_events - PAGE), PAGE);
    this.low = { turn, seq: page[0]?.seq ?? total_events };
    this.high = { turn, seq: (page.at(-1)?.seq ?? total_events - 1) + 1 };
    return page;
  }

  /** Loads the page before the loaded range, from an earlier turn if necessary. */
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

  /** Accepts a live event. Returns `old` if it is known, and `gap` if an event before it is missing. */
  accept(frame: SessionFrame): StoredEvent | 'old' | 'gap' {
    const { high } = this;
    if (frame.turn < high.turn || (frame.turn === high.turn && frame.seq < high.seq)) return 'old';
    const follows = frame.turn === high.turn ? frame.seq === high.seq : frame.seq === 0;
    if (!follows) return 'gap';
    if (this.low.turn === 0) this.low = { turn: frame.turn, seq: 0 };
    this.high = { turn: frame.turn, seq: frame.seq + 1 };
    return shortened(frame);
  }

  private async page(turn: number, from_seq: number, limit: number): Promise<StoredEvent[]> {
    const { events } = await this.poll({ turn, from_seq, limit });
    return events.map((event) => ({ turn, ...event }));
  }
}

/** A live event with texts as short as those of a page. */
export function shortened(frame: SessionFrame): StoredEvent {
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
  const event = shorten(frame.event as Json) as Event;
  return {
    turn: frame.turn,
    seq: frame.seq,
    at: frame.at,
    event: cut ? event : frame.event,
    ...(cut ? { truncated: true } : {}),
  };
}
