/** The hub behind this page's address. Requests that carry a token wait here until it has proven that it is the hub. */

import { needsProof, provenKey } from '../handover/identity';

class Hub {
  private known: string | null = null;
  private proof: Promise<boolean> | null = null;

  /** The key of the hub that this page was loaded from; null before the first proof. */
  get key(): string | null {
    return this.known;
  }

  /** The page before a reload knew this key. */
  expect(key: string | null): void {
    this.known = key;
  }

  /** Whether the hub has proven its identity since the connection was last in doubt. */
  async isProven(): Promise<boolean> {
    if (!needsProof()) return true;
    this.proof ??= this.prove();
    const asked = this.proof;
    const proven = await asked;
    if (!proven && this.proof === asked) this.proof = null;
    return proven;
  }

  /** The connection was lost: another program may listen there now. */
  doubt(): void {
    this.proof = null;
  }

  private async prove(): Promise<boolean> {
    const key = await provenKey(this.known);
    this.known ??= key;
    return key !== null;
  }
}

export const hub = new Hub();
