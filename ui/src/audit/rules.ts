/** Texts for rules, and the values of the rule forms. */

import type { Counts, Fields, SessionView } from '../wire';

export const COUNTS: Record<Counts, string> = {
  fully: 'applies in full',
  narrowing: 'can only deny or ask, not allow',
  within_scope: 'allows only calls that its author may allow',
};

/** The session parameter for a typed name or id. Empty means every session. */
export function sessionParam(typed: string, sessions: readonly SessionView[]): { session_id?: string } {
  const text = typed.trim();
  if (text === '') return {};
  return { session_id: sessions.find((session) => session.name === text)?.id ?? text };
}

/** Parses JSON that must be an object. */
export function parseObject(typed: string): { input: Fields } | { wrong: string } {
  try {
    const value: unknown = JSON.parse(typed.trim() === '' ? '{}' : typed);
    if (value === null || typeof value !== 'object' || Array.isArray(value))
      return { wrong: 'must be a JSON object: {…}' };
    return { input: value as Fields };
  } catch (error) {
    return { wrong: error instanceof Error ? error.message : String(error) };
  }
}
