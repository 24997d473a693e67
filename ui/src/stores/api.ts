/**
 * Calls to the hub. The token is kept in the memory of this page only and is sent as a Bearer header. It is never put into a
 * storage, a cookie or a URL, because browsers write all of these to disk.
 */

import type { Credential } from '../handover/heldCredentials';
import type { ErrorKind, Fields, Method, Params, Result } from '../wire';
import { hub } from './hub';

let current: Credential | null = null;

/** An error that the hub returned, with its message. */
export class HubError extends Error {
  constructor(
    readonly kind: ErrorKind,
    message: string,
    readonly data: Fields = {},
  ) {
    super(message);
  }

  /** The parameter that is wrong; empty if the hub names none. */
  get field(): string {
    const { field } = this.data;
    return typeof field === 'string' ? field : '';
  }
}

/** The pause before a read is repeated while the hub is disconnected, in milliseconds. */
export const RETRY = 1_000;

/** The hub could not be reached; it may be restarting. */
export class Disconnected extends Error {}

/** The token is not valid, or no longer valid. */
export class SignedOut extends Error {}

/** The credential that this page is signed in with. */
export function credential(): Credential | null {
  return current;
}

export function setCredential(value: Credential | null): void {
  current = value;
}

/** Sends a request with this tab's token, and only to a hub that has proven its identity. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  if (!(await hub.isProven())) throw new Disconnected('the hub is disconnected');
  init.signal?.throwIfAborted();
  const headers = new Headers(init.headers);
  if (current !== null) headers.set('authorization', `Bearer ${current.token}`);
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers, credentials: 'omit', cache: 'no-store' });
  } catch (error) {
    hub.doubt();
    if (init.signal?.aborted) throw error;
    throw new Disconnected('the hub is disconnected');
  }
  if (response.status === 401) throw new SignedOut('the hub does not accept this token');
  return response;
}

let number = 0;

/** The arguments of `call` after the method: parameters may be left out if none is required. */
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
    throw new Disconnected(`the hub responded with HTTP ${response.status}`);
  }
  if (answer.error) {
    const data = answer.error.data ?? {};
    throw new HubError((data['type'] ?? 'internal') as ErrorKind, answer.error.message, data);
  }
  if (answer.result === undefined) throw new Disconnected(`the hub responded with HTTP ${response.status}`);
  return answer.result;
}
