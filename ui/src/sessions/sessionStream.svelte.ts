/**
 * A session's stream as it is looked at: reads by pages, follows live, keeps what is being written. One for each look; `close` ends it.
 * What the view shows changes at most once per frame, however fast events come.
 */

import { tick } from 'svelte';
import { errorText } from '../pure/text';
import { call } from '../stores/api';
import { live } from '../stores/live.svelte';
import { EventPager } from './eventPages';
import { LiveText, type LiveBlock } from './liveText';
import { Timeline, type Item } from './timeline';

/** At first, so many items are read, over as many turns as it takes. */
const FIRST = 60;

export class SessionStream {
  items = $state.raw<Item[]>([]);
  writing = $state.raw<LiveBlock[]>([]);
  /** What comes next is put before the first item: the list has to know. */
  shift = $state(false);
  state = $state<'reading' | 'earlier' | 'there'>('reading');
  /** Why it cannot be shown, or not be followed. */
  wrong = $state<string | null>(null);
  /** There may be something further up. */
  more = $state(false);
  /** Why there is nothing further up, if something was. */
  gone = $state<string | null>(null);
  /** How many items have come at the end since it began. */
  added = $state(0);

  private fold = new Timeline();
  private written = new LiveText();
  private reading: EventPager;
  private unsubscribe: () => void;
  private frame = 0;
  private closed = false;
  private following = false;

  constructor(private session: string) {
    this.reading = new EventPager((wanted) => call('claudecode.poll', { session_id: session, ...wanted }));
    this.unsubscribe = live.listen({
      event: (event) => {
        if (!this.following) return;
        const read = this.reading.hear(event);
        if (read === 'old') return;
        if (read === 'gap') return this.follow();
        this.written.stored(read);
        const before = this.fold.length;
        this.fold.append([read]);
        this.added += this.fold.length - before;
        this.soon();
      },
      delta: (delta) => {
        this.written.delta(delta);
        this.soon();
      },
      lost: (error) => (this.wrong = errorText(error)),
    });
    void this.begin();
  }

  close(): void {
    this.closed = true;
    this.unsubscribe();
    cancelAnimationFrame(this.frame);
    live.follow(null);
  }

  private async begin(): Promise<void> {
    try {
      this.fold.append(await this.reading.begin());
      while (this.fold.length < FIRST && this.reading.more && !this.closed) {
        this.fold.prepend(await this.reading.earlier());
      }
    } catch (error) {
      this.wrong = errorText(error);
    }
    if (this.closed) return;
    this.show();
    this.state = 'there';
    this.follow();
  }

  /** Reads a page further up. */
  async earlier(): Promise<void> {
    if (this.state !== 'there' || !this.reading.more) return;
    this.state = 'earlier';
    try {
      const page = await this.reading.earlier();
      if (this.closed) return;
      // What came at the end meanwhile is shown by itself: a list cannot grow at both ends at once.
      this.show();
      await tick();
      this.fold.prepend(page);
      this.shift = true;
      this.show();
      await tick();
      this.shift = false;
    } catch (error) {
      this.wrong = errorText(error);
    } finally {
      this.state = 'there';
    }
  }

  private follow(): void {
    this.following = true;
    live.follow({ session: this.session, ...this.reading.high });
  }

  private soon(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      // While a page is put before the first, what comes at the end waits.
      if (this.shift) this.soon();
      else this.show();
    });
  }

  private show(): void {
    this.items = this.fold.items;
    this.writing = this.written.now;
    this.more = this.reading.more;
    this.gone = this.reading.gone;
  }
}
