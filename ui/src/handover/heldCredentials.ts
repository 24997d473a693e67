/** Credentials of tabs that are reloading: kept in memory, given back once to the same tab, and deleted after a while. */

export interface Credential {
  token: string;
  /** The name of a token that was created by signing in; null for a token that the person typed. */
  name: string | null;
  /** The public key of the token's hub; null if the hub has not proven its identity. */
  hub: string | null;
}

/** A reloaded page asks for its credential within this time, in milliseconds. */
export const HELD_FOR = 30_000;

export class HeldCredentials {
  private credentials = new Map<string, { credential: Credential; until: number }>();

  constructor(private readonly now: () => number = Date.now) {}

  /** Keeps the credential of a tab. */
  keep(tab: string, credential: Credential): void {
    this.forgetOld();
    this.credentials.set(tab, { credential, until: this.now() + HELD_FOR });
  }

  /** Returns the credential to its tab, and deletes it. */
  take(tab: string): Credential | null {
    this.forgetOld();
    const held = this.credentials.get(tab);
    this.credentials.delete(tab);
    return held?.credential ?? null;
  }

  forgetOld(): void {
    for (const [tab, { until }] of this.credentials) if (this.now() >= until) this.credentials.delete(tab);
  }

  get size(): number {
    return this.credentials.size;
  }
}
