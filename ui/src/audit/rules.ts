/** Rules as the hub lists them, and what is typed of them. */

import type { Counts, Fields, SessionView } from '../wire';

export const COUNTS: Record<Counts, string> = {
  fully: 'counts in full',
  narrowing: 'can only narrow: what it allows does not count',
  within_scope: 'counts as far as its maker may allow',
};

/** What is typed as a session, as a parameter: a name of one that is known, or an id. Empty is every session. */
export function sessionParam(typed: string, sessions: readonly SessionView[]): { session_id?: string } {
  const text = typed.trim();
  if (text === '') return {};
  return { session_id: sessions.find((session) => session.name === text)?.id ?? text };
}

/** JSON that has to be an object, or what is wrong with it. */
export function parseObject(typed: string): { input: Fields } | { wrong: string } {
  try {
    const value: unknown = JSON.parse(typed.trim() === '' ? '{}' : typed);
    if (value === null || typeof value !== 'object' || Array.isArray(value))
      return { wrong: 'it has to be an object: {…}' };
    return { input: value as Fields };
  } catch (error) {
    return { wrong: error instanceof Error ? error.message : String(error) };
  }
}
