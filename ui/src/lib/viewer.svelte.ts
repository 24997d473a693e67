/** Who looks: whether this tab is signed in, and what it may do. */

import { call, keepToken, token } from './api';
import { live, type Hello } from './live.svelte';

/** What the hub calls the token that this tab signed in with. */
const NAME = 'plexus-token-name';

class Viewer {
  may = $state.raw<Hello['may']>([]);
  /** The tab has a token; whether it is still good, the stream tells. */
  signedIn = $state(token() !== null);

  constructor() {
    live.listen({ begun: (hello) => (this.may = hello.may) });
  }

  can(what: Hello['may'][number]): boolean {
    return this.may.includes(what);
  }

  /** Takes the code that `plexus console` put behind the `#` of the address, and forgets it at once. */
  async enter(): Promise<string | null> {
    const code = /^#login=([\w-]+)$/.exec(location.hash)?.[1];
    if (!code) return null;
    history.replaceState(null, '', location.pathname);
    try {
      const response = await fetch('/console/login', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ code }),
        credentials: 'omit',
      });
      const answer = await response.json();
      if (!response.ok) return String(answer.error?.message ?? `the hub answered with HTTP ${response.status}`);
      this.use(answer.token);
      sessionStorage.setItem(NAME, String(answer.name));
      return null;
    } catch {
      return 'the hub is away';
    }
  }

  use(value: string): void {
    keepToken(value);
    this.signedIn = true;
  }

  /** The token is good for nothing any more. */
  leave(): void {
    keepToken(null);
    this.signedIn = false;
  }

  /** Signs out: the token that this tab signed in with ends, one that was handed out is only forgotten. */
  async signOut(): Promise<void> {
    const name = sessionStorage.getItem(NAME);
    sessionStorage.removeItem(NAME);
    // Where the hub is away the token ends by itself, within a day.
    if (name !== null) await call('token.revoke', { name }).catch(() => {});
    keepToken(null);
    location.replace(location.pathname);
  }
}

export const viewer = new Viewer();
