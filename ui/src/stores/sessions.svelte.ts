/** All sessions that the viewer may see, parents before their children. Read again whenever the hub reports a change. */

import { projectName } from '../pure/project';
import type { Approval, SessionView } from '../wire';
import { call, HubError } from './api';
import { live } from './live.svelte';

class Sessions {
  all = $state.raw<SessionView[]>([]);
  loaded = $state(false);
  byId = $derived(new Map(this.all.map((session) => [session.id, session])));
  private refreshing = false;
  private changedMeanwhile = false;

  constructor() {
    live.listen({ connected: () => void this.refresh(), changed: () => void this.refresh() });
  }

  /** The path of a session, such as `lead/worker`. */
  path(id: string): string | undefined {
    return this.byId.get(id)?.path;
  }

  /** The names of its path: from the root of the tree, or the agent outside the hub above it, down to this session. */
  names(id: string): string[] {
    return this.path(id)?.split('/') ?? [];
  }

  /** The project of an approval. A worktree belongs to the project that it was created from. */
  project({ session_id, cwd }: Pick<Approval, 'session_id' | 'cwd'>): string {
    return this.byId.get(session_id)?.project.name ?? projectName(cwd);
  }

  /** Reads the list. Only one request runs at a time; a change during it causes another. */
  async refresh(): Promise<void> {
    if (this.refreshing) {
      this.changedMeanwhile = true;
      return;
    }
    this.refreshing = true;
    try {
      for (;;) {
        this.changedMeanwhile = false;
        const started = performance.now();
        this.all = (await call('claudecode.list')).sessions;
        this.loaded = true;
        if (!this.changedMeanwhile) break;
        // With thousands of busy sessions, refreshing may use at most a quarter of the time.
        await new Promise((resolve) => setTimeout(resolve, Math.min(5_000, 3 * (performance.now() - started))));
      }
    } catch (error) {
      // A viewer who may only answer approvals sees no sessions. On any other failure the stream fails too, and reconnects.
      if (error instanceof HubError) this.loaded = true;
    } finally {
      this.refreshing = false;
    }
  }
}

export const sessions = new Sessions();
