/** Whether this tab is signed in, and what its token may do. */

import type { Access, SignedIn, SignIn } from '../wire';
import { call, credential, setCredential } from './api';
import { handover } from './handover';
import { hub } from './hub';
import { live } from './live.svelte';

/** The part of a sign-in link after the address. */
const LINK = /^#login=([\w-]+)$/;

/** Shown if the browser did not hand the credential over during a reload. */
export const LOST =
  'This tab is signed out. The console keeps its token in memory only, and the browser lost it when the page was reloaded. Run `plexus console` to sign in again.';

/** Shown if the hub no longer accepts the token of this tab. */
const ENDED = 'This tab was signed out: its token has expired or was revoked. Run `plexus console` to sign in again.';
const WRONG_TOKEN =
  'The hub does not accept this token. It may be misspelt, expired or revoked. `plexus tokens` lists the tokens that work.';

class Viewer {
  may = $state.raw<Access[]>([]);
  /** Why the tab is signed out; null if nothing went wrong. */
  why = $state<string | null>(null);
  /** Whether a sign-in is in progress. */
  entering = $state(true);
  /** Whether another tab of this browser is signed in. Tabs sign in separately. */
  elsewhere = $state(false);
  private tabs = 'BroadcastChannel' in window ? new BroadcastChannel('plexus-tabs') : null;
  /** The part of the address after `#` before a sign-in link was pasted. */
  private place = '';
  /** Whether the hub has accepted the token. */
  private accepted = false;
  /** The tab has a token. The stream finds out whether it is still valid. */
  signedIn = $state(false);

  constructor() {
    live.listen({
      connected: (hello) => {
        this.may = hello.may;
        this.accepted = true;
      },
    });
    this.tabs?.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
      if (data === 'signed in?' && this.signedIn) this.tabs?.postMessage('signed in');
      else if (data === 'signed in') this.elsewhere = true;
    });
    // A sign-in link that is pasted into an open tab changes only the part after `#`, so the browser does not load the page again.
    addEventListener('hashchange', ({ oldURL }) => {
      if (!LINK.test(location.hash)) return;
      const before = new URL(oldURL || location.href).hash;
      this.place = LINK.test(before) ? '' : before;
      void this.enter();
    });
    // Earlier versions kept the token here.
    for (const name of ['plexus-token', 'plexus-token-name']) sessionStorage.removeItem(name);
    addEventListener('pagehide', () => {
      const held = credential();
      if (held !== null) handover.give({ ...held, hub: hub.key });
    });
  }

  /** Who is signed in, and with which rights. */
  get who(): string {
    if (this.can('rule')) return 'Signed in as the operator';
    const rights = this.may.join(', ');
    return `Signed in with a token that may ${rights === '' ? 'do nothing' : rights}`;
  }

  can(what: Access): boolean {
    return this.may.includes(what);
  }

  /** Signs in with the code after the `#` of the address, or with the credential from before a reload. */
  async enter(): Promise<void> {
    this.entering = true;
    const why = await this.attempt();
    this.why = this.signedIn ? null : why;
    this.entering = false;
    if (!this.signedIn) this.tabs?.postMessage('signed in?');
  }

  private async attempt(): Promise<string | null> {
    const code = LINK.exec(location.hash)?.[1];
    if (!code) {
      const taken = await handover.take();
      if (taken !== null) {
        hub.expect(taken.hub);
        this.use(taken.token, taken.name);
        // The browser may look for a new version of the worker first, which can take seconds. The page does not wait for it.
        void handover.start();
        return null;
      }
      const why = handover.returning ? LOST : null;
      handover.close();
      await handover.start();
      return why;
    }
    // A tab that was opened with a link, and then got a sign-in link, shows the place of the first one.
    history.replaceState(null, '', location.pathname + this.place);
    dispatchEvent(new HashChangeEvent('hashchange'));
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
    const before = credential();
    setCredential({ token, name, hub: hub.key });
    handover.open();
    this.why = null;
    this.accepted = false;
    this.signedIn = true;
    // A tab that was signed in already continues with the new token.
    if (before !== null && before.token !== token) live.restart();
  }

  /** The hub does not accept the token, or no longer. */
  leave(): void {
    if (this.signedIn) this.why = this.accepted ? ENDED : WRONG_TOKEN;
    this.forget();
  }

  private forget(): void {
    setCredential(null);
    handover.close();
    this.signedIn = false;
  }

  /** Signs out. A token that was created by signing in is revoked; a token that the person typed is only forgotten. */
  async signOut(): Promise<void> {
    const name = credential()?.name ?? null;
    // If the hub is disconnected, the token expires within a day.
    if (name !== null) await call('token.revoke', { name }).catch(() => {});
    this.forget();
    location.replace(location.pathname);
  }
}

export const viewer = new Viewer();
