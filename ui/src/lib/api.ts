/** Calls to the hub. The token is in the memory of this page only, and sent as Bearer: never in a storage, a cookie or a URL, which all reach the disk. */

import type { Credential } from '../handover/held';
import { hub } from './hub';
import type { Fields } from './wire';

let held: Credential | null = null;

/** What the hub refused, in its own words. */
export class Refused extends Error {
  constructor(
    readonly kind: string,
    message: string,
    readonly data: Fields = {},
  ) {
    super(message);
  }
}

/** The hub was not reached; it may be restarting. */
export class Away extends Error {}

/** The token is good for nothing (any more). */
export class SignedOut extends Error {}

/** What this page is signed in with. */
export function credential(): Credential | null {
  return held;
}

export function hold(value: Credential | null): void {
  held = value;
}

/** A request with this tab's token. It is sent only to a hub that has proven its identity. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  if (!(await hub.isProven())) throw new Away('the hub is disconnected');
  init.signal?.throwIfAborted();
  const headers = new Headers(init.headers);
  if (held !== null) headers.set('authorization', `Bearer ${held.token}`);
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers, credentials: 'omit', cache: 'no-store' });
  } catch (error) {
    hub.doubt();
    if (init.signal?.aborted) throw error;
    throw new Away('the hub is disconnected');
  }
  if (response.status === 401) throw new SignedOut('the hub does not know this token');
  return response;
}

let number = 0;

/** Calls a method. */
export async function call<T = Fields>(method: string, params: object = {}, signal?: AbortSignal): Promise<T> {
  number += 1;
  const body = JSON.stringify({ jsonrpc: '2.0', id: number, method, params });
  const response = await request('/rpc', {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json' },
    ...(signal ? { signal } : {}),
  });
  let answer: { result?: T; error?: { message: string; data?: Fields } };
  try {
    answer = await response.json();
  } catch {
    throw new Away(`the hub answered with HTTP ${response.status}`);
  }
  if (answer.error) {
    const data = answer.error.data ?? {};
    throw new Refused(String(data['type'] ?? 'error'), answer.error.message, data);
  }
  if (answer.result === undefined) throw new Away(`the hub answered with HTTP ${response.status}`);
  return answer.result;
}
