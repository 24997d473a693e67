/** Whether this tab is signed in, and what its token may do. */

import type { Access, SignedIn, SignIn } from '../wire';
import { call, credential, setCredential } from './api';
import { handover } from './handover';
import { hub } from './hub';
import { live } from './live.svelte';

/** Shown if the browser did not hand the credential over during a reload. */
export const LOST =
  'This tab is signed out. The console keeps its token in memory only, and the browser lost it when the page was reloaded. Run `plexus console` to sign in again.';

class Viewer {
  may = $state.raw<Access[]>([]);
  /** The tab has a token. The stream finds out whether it is still valid. */
  signedIn = $state(false);

  constructor() {
    live.listen({ connected: (hello) => (this.may = hello.may) });
    // Earlier versions kept the token here.
    for (const name of ['plexus-token', 'plexus-token-name']) sessionStorage.removeItem(name);
    addEventListener('pagehide', () => {
      const held = credential();
      if (held !== null) handover.give({ ...held, hub: hub.key });
    });
  }

  can(what: Access): boolean {
    return this.may.includes(what);
  }

  /** Signs in with the code after the `#` of the address, or with the credential from before a reload. Returns an error text if neither works. */
  async enter(): Promise<string | null> {
    const code = /^#login=([\w-]+)$/.exec(location.hash)?.[1];
    if (!code) {
      const taken = await handover.take();
      const why = taken === null && handover.returning ? LOST : null;
      if (taken === null) handover.close();
      else {
        hub.expect(taken.hub);
        this.use(taken.token, taken.name);
      }
      await handover.start();
      return why;
    }
    history.replaceState(null, '', location.pathname);
    const started = handover.start();
    const why = await this.exchange(code);
    await started;
    return why;
  }

  private async exchange(code: string): Promise<string | null> {
    try {
      if (!(await hub.isProven())) return 'The hub is disconnected.';
      const response = await fetch('/console/login', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ code } satisfies SignIn),
        credentials: 'omit',
        cache: 'no-store',
      });
      const answer = (await response.json()) as SignedIn & { error?: { message: string } };
      if (!response.ok) return answer.error?.message ?? `The hub responded with HTTP ${response.status}.`;
      this.use(answer.token, answer.name);
      return null;
    } catch {
      return 'The hub is disconnected.';
    }
  }

  use(token: string, name: string | null = null): void {
    setCredential({ token, name, hub: hub.key });
    handover.open();
    this.signedIn = true;
  }

  /** The token is no longer valid. */
  leave(): void {
    setCredential(null);
    handover.close();
    this.signedIn = false;
  }

  /** Signs out. A token that was created by signing in is revoked; a token that the person typed is only forgotten. */
  async signOut(): Promise<void> {
    const name = credential()?.name ?? null;
    // If the hub is disconnected, the token expires within a day.
    if (name !== null) await call('token.revoke', { name }).catch(() => {});
    this.leave();
    location.replace(location.pathname);
  }
}

export const viewer = new Viewer();
