/**
 * The data of a timeline view: loads pages, follows the session live and collects live text. Each view has its own; `close` ends it. The
 * view is updated at most once per frame, however fast events arrive.
 */

import { tick } from 'svelte';
import { errorText } from '../pure/text';
import { call, Disconnected, RETRY } from '../stores/api';
import { live } from '../stores/live.svelte';
import type { EventPlace } from '../pure/route';
import { EventPager, type EventPosition } from './eventPages';
import { LiveText, type LiveBlock } from './liveText';
import { itemAt, Timeline, type Item, type StoredEvent } from './timeline';

/** The number of items that are loaded at first, across turns. */
const FIRST = 60;
/** The most pages that are loaded to reach a place. */
const MOST_PAGES = 300;

const isBefore = (a: EventPosition, b: EventPosition) => a.turn < b.turn || (a.turn === b.turn && a.seq <= b.seq);

export class SessionStream {
  items = $state.raw<Item[]>([]);
  liveBlocks = $state.raw<LiveBlock[]>([]);
  /** Items are being added before the first one: the list must keep its scroll position. */
  shift = $state(false);
  state = $state<'loading' | 'earlier' | 'ready'>('loading');
  /** Why the session cannot be loaded or followed. */
  error = $state<string | null>(null);
  /** Whether there may be earlier events. */
  more = $state(false);
  /** Why earlier events are not available, if they were deleted. */
  gone = $state<string | null>(null);
  /** How many items were added at the end since the view was opened. */
  added = $state(0);

  private timeline = new Timeline();
  private liveText = new LiveText();
  private pager: EventPager;
  private unsubscribe: () => void;
  private frame = 0;
  private closed = false;
  private following = false;
  private loaded: Promise<void>;
  private reading: Promise<void> | null = null;

  constructor(private session: string) {
    this.pager = new EventPager((wanted) => call('claudecode.poll', { session_id: session, ...wanted }));
    this.unsubscribe = live.listen({
      event: (event) => {
        if (!this.following) return;
        const accepted = this.pager.accept(event);
        if (accepted === 'old') return;
        if (accepted === 'gap') return this.follow();
        this.liveText.stored(accepted);
        const before = this.timeline.length;
        this.timeline.append([accepted]);
        this.added += this.timeline.length - before;
        this.scheduleUpdate();
      },
      delta: (delta) => {
        this.liveText.delta(delta);
        this.scheduleUpdate();
      },
      lost: (error) => (this.error = errorText(error)),
    });
    this.loaded = this.load();
  }

  close(): void {
    this.closed = true;
    this.unsubscribe();
    cancelAnimationFrame(this.frame);
    live.follow(null);
  }

  private async load(): Promise<void> {
    try {
      this.timeline.append(await this.page(() => this.pager.latest()));
      while (this.timeline.length < FIRST && this.pager.more && !this.closed) {
        this.timeline.prepend(await this.page(() => this.pager.earlier()));
      }
    } catch (error) {
      this.error = errorText(error);
    }
    if (this.closed) return;
    this.update();
    this.state = 'ready';
    this.follow();
  }

  /** Reads a page, and repeats it while the hub is disconnected: nobody can scroll past the end of a list to ask for it again. */
  private async page(read: () => Promise<StoredEvent[]>): Promise<StoredEvent[]> {
    for (let failed = false; ; failed = true) {
      try {
        const events = await read();
        if (failed) this.error = null;
        return events;
      } catch (error) {
        if (!(error instanceof Disconnected)) throw error;
        this.error = errorText(error);
        await new Promise((resolve) => setTimeout(resolve, RETRY));
        if (this.closed) return [];
      }
    }
  }

  /** Loads an earlier page; one at a time. */
  earlier(): Promise<void> {
    this.reading ??= this.readEarlier().finally(() => (this.reading = null));
    return this.reading;
  }

  private async readEarlier(): Promise<void> {
    if (this.state !== 'ready' || !this.pager.more) return;
    this.state = 'earlier';
    try {
      const page = await this.page(() => this.pager.earlier());
      if (this.closed) return;
      // New items at the end are shown first: the list cannot grow at both ends at once.
      this.update();
      await tick();
      this.timeline.prepend(page);
      this.shift = true;
      this.update();
      await tick();
      this.shift = false;
    } catch (error) {
      this.error = errorText(error);
    } finally {
      this.state = 'ready';
    }
  }

  /** Loads earlier pages until a place is loaded. Returns its item; `null` if there is none. */
  async reach(place: EventPlace): Promise<Item | null> {
    await this.loaded;
    const wanted = { turn: place.turn, seq: place.seq ?? 0 };
    for (let pages = 0; pages < MOST_PAGES && !this.closed; pages++) {
      if (!this.pager.more || isBefore(this.pager.low, wanted) || this.error !== null) break;
      await this.earlier();
    }
    return itemAt(this.items, place);
  }

  private follow(): void {
    this.following = true;
    live.follow({ session: this.session, ...this.pager.high });
  }

  private scheduleUpdate(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      // While items are added before the first one, new items at the end wait.
      if (this.shift) this.scheduleUpdate();
      else this.update();
    });
  }

  private update(): void {
    this.items = this.timeline.items;
    this.liveBlocks = this.liveText.now;
    this.more = this.pager.more;
    this.gone = this.pager.gone;
  }
}
