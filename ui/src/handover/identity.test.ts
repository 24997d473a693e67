import { afterEach, expect, test, vi } from 'vitest';
import { hex, provenKey } from './identity';

const HOST = '127.0.0.1:4445';

async function keys(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign', 'verify']);
}

async function publicKey(pair: CryptoKeyPair): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey)));
}

/** A program at the hub's address that signs every nonce, as the hub at `host`. */
function listen(pair: CryptoKeyPair, host: string, key?: string): void {
  vi.stubGlobal('fetch', async (path: string) => {
    const statement = `plexus hub\n${host}\n127.0.0.1:50000\n${path.replace('/identity?nonce=', '')}`;
    const made = await crypto.subtle.sign(
      { name: 'ECDSA', hash: 'SHA-256' },
      pair.privateKey,
      new TextEncoder().encode(statement),
    );
    return new Response(
      JSON.stringify({
        key: key ?? (await publicKey(pair)),
        peer: '127.0.0.1:50000',
        signature: hex(new Uint8Array(made)),
      }),
    );
  });
}

afterEach(() => vi.unstubAllGlobals());

test('the hub is identified by its key', async () => {
  const pair = await keys();
  listen(pair, HOST);
  const key = await publicKey(pair);
  expect(await provenKey(null, HOST)).toBe(key);
  expect(await provenKey(key, HOST)).toBe(key);
});

test('another program is not accepted, whatever it responds', async () => {
  const key = await publicKey(await keys());
  const other = await keys();
  listen(other, HOST);
  expect(await provenKey(key, HOST)).toBeNull();
  listen(other, HOST, key);
  expect(await provenKey(key, HOST)).toBeNull();
  for (const answer of [
    '',
    '{}',
    '{"key":"zz","signature":"00"}',
    '{"status":"ok"}',
    JSON.stringify({ key, signature: '' }),
  ]) {
    vi.stubGlobal('fetch', async () => new Response(answer));
    expect(await provenKey(key, HOST)).toBeNull();
  }
  vi.stubGlobal('fetch', async () => Promise.reject(new TypeError()));
  expect(await provenKey(key, HOST)).toBeNull();
});

test('a proof for another port is invalid', async () => {
  const pair = await keys();
  listen(pair, '127.0.0.1:4446');
  expect(await provenKey(await publicKey(pair), HOST)).toBeNull();
});

test('a replayed proof is invalid', async () => {
  const pair = await keys();
  listen(pair, HOST);
  const recorded = await (await fetch('/identity?nonce=00')).text();
  vi.stubGlobal('fetch', async () => new Response(recorded));
  expect(await provenKey(await publicKey(pair), HOST)).toBeNull();
});
