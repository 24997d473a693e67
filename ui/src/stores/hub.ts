/** The identity of the hub at this page's address. A request with a token waits until the hub has proven its identity. */

import { needsProof, provenKey } from '../handover/identity';

class Hub {
  private known: string | null = null;
  private proof: Promise<boolean> | null = null;

  /** The public key of the hub that served this page; null before the first proof. */
  get key(): string | null {
    return this.known;
  }

  /** Expects the key that was known before a reload. */
  expect(key: string | null): void {
    this.known = key;
  }

  /** Whether the hub has proven its identity since the last disconnect. */
  async isProven(): Promise<boolean> {
    if (!needsProof()) return true;
    this.proof ??= this.prove();
    const asked = this.proof;
    const proven = await asked;
    if (!proven && this.proof === asked) this.proof = null;
    return proven;
  }

  /** The connection was lost. Another program may listen at the address now. */
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
