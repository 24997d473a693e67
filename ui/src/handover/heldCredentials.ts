/** Credentials that pages left here on their way through a reload: in memory only, each for the tab that left it, once and not for long. */

export interface Credential {
  token: string;
  /** The name of a token that was created by signing in; null for one that somebody was given. */
  name: string | null;
  /** The key of the hub that takes the token; null where no hub has proven its identity. */
  hub: string | null;
}

/** A page that is reloaded asks for its credential within this time, in milliseconds. */
export const HELD_FOR = 30_000;

export class HeldCredentials {
  private credentials = new Map<string, { credential: Credential; until: number }>();

  constructor(private readonly now: () => number = Date.now) {}

  /** Holds the credential of a tab. */
  keep(tab: string, credential: Credential): void {
    this.forgetOld();
    this.credentials.set(tab, { credential, until: this.now() + HELD_FOR });
  }

  /** Hands the credential back to its tab, and forgets it. */
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
