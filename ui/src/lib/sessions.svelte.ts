/** All sessions that the viewer may see, a parent before its children, looked at anew whenever the hub says that something changed. */

import { call, Refused } from './api';
import { live } from './live.svelte';
import type { SessionView } from '../wire';

class Sessions {
  all = $state.raw<SessionView[]>([]);
  known = $state(false);
  /** By id. */
  byId = $derived(new Map(this.all.map((session) => [session.id, session])));
  private looking = false;
  private again = false;

  constructor() {
    live.listen({ begun: () => void this.look(), changed: () => void this.look() });
  }

  /** The names from the root of the tree down to this session. */
  path(id: string): string[] {
    const names: string[] = [];
    for (let at = this.byId.get(id); at && names.length < 64;) {
      names.unshift(at.name);
      const above = at.answers_to;
      at = above.kind === 'session' ? this.byId.get(above.id) : undefined;
    }
    return names;
  }

  /** One look at a time; what changes meanwhile is looked at after it. */
  async look(): Promise<void> {
    if (this.looking) {
      this.again = true;
      return;
    }
    this.looking = true;
    try {
      for (;;) {
        this.again = false;
        const begun = performance.now();
        this.all = (await call('claudecode.list')).sessions;
        this.known = true;
        if (!this.again) break;
        // Of thousands that change all the time, most of the time is left for what else there is to do.
        await new Promise((resolve) => setTimeout(resolve, Math.min(5_000, 3 * (performance.now() - begun))));
      }
    } catch (error) {
      // Decider may only answer approvals sees no sessions. Else the stream breaks as well, and begins again.
      if (error instanceof Refused) this.known = true;
    } finally {
      this.looking = false;
    }
  }
}

export const sessions = new Sessions();
