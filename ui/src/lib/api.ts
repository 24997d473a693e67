/** Calls to the hub. The token is in the memory of this page only, and sent as Bearer: never in a storage, a cookie or a URL, which all reach the disk. */

import type { Credential } from '../handover/held';
import { hub } from './hub';
import type { ErrorKind, Fields, Method, Params, Result } from '../wire';

let held: Credential | null = null;

/** What the hub refused, in its own words. */
export class Refused extends Error {
  constructor(
    readonly kind: ErrorKind,
    message: string,
    readonly data: Fields = {},
  ) {
    super(message);
  }

  /** The parameter that the hub refused; empty where it names none. */
  get field(): string {
    const { field } = this.data;
    return typeof field === 'string' ? field : '';
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

/** The arguments of `call` after the method: parameters may be left out where none is required. */
type Arguments<M extends Method> =
  Record<string, never> extends Params<M>
    ? [params?: Params<M>, signal?: AbortSignal]
    : [params: Params<M>, signal?: AbortSignal];

/** Calls a method of the hub. */
export async function call<M extends Method>(method: M, ...[params, signal]: Arguments<M>): Promise<Result<M>> {
  number += 1;
  const body = JSON.stringify({ jsonrpc: '2.0', id: number, method, params: params ?? {} });
  const response = await request('/rpc', {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json' },
    ...(signal ? { signal } : {}),
  });
  let answer: { result?: Result<M>; error?: { message: string; data?: Fields } };
  try {
    answer = (await response.json()) as typeof answer;
  } catch {
    throw new Away(`the hub answered with HTTP ${response.status}`);
  }
  if (answer.error) {
    const data = answer.error.data ?? {};
    throw new Refused((data['type'] ?? 'internal') as ErrorKind, answer.error.message, data);
  }
  if (answer.result === undefined) throw new Away(`the hub answered with HTTP ${response.status}`);
  return answer.result;
}
