/**
 * Verifies that the program at this address is the hub that served the page. While the hub is not running, an agent's command can listen
 * on its port, and a page that sent its token there would leak it. The hub proves its identity by signing a nonce.
 */

import type { Proof } from '../wire';

/** The time limit for a proof, in milliseconds. */
const PATIENCE = 10_000;

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' };

/** Asks the hub for a proof. Returns its key if the proof is valid and, if a key is expected, was made with that key; otherwise null. */
export async function provenKey(expected: string | null, host: string = location.host): Promise<string | null> {
  const nonce = hex(crypto.getRandomValues(new Uint8Array(32)));
  try {
    const response = await fetch(`/identity?nonce=${nonce}`, {
      credentials: 'omit',
      cache: 'no-store',
      redirect: 'error',
      signal: AbortSignal.timeout(PATIENCE),
    });
    const { key, peer, signature } = (await response.json()) as Proof;
    if (expected !== null && key !== expected) return null;
    const imported = await crypto.subtle.importKey('raw', bytes(key), ALGORITHM, false, ['verify']);
    const statement = new TextEncoder().encode(`plexus hub\n${host.toLowerCase()}\n${peer}\n${nonce}`);
    const right = await crypto.subtle.verify({ name: 'ECDSA', hash: 'SHA-256' }, imported, bytes(signature), statement);
    return right ? key : null;
  } catch {
    return null;
  }
}

/**
 * Whether a proof can be verified: browsers offer WebCrypto only in secure contexts. The development server forwards requests from
 * another address than the one that the hub proves.
 */
export function needsProof(): boolean {
  return !import.meta.env.DEV && typeof crypto.subtle === 'object';
}

export function hex(data: Uint8Array): string {
  return Array.from(data, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function bytes(text: string): Uint8Array<ArrayBuffer> {
  if (!/^([0-9a-f]{2})*$/.test(text)) throw new Error('not hexadecimal');
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}
