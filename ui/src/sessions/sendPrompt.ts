/** Says something to a session, whatever it is doing: into its turn, or as the next one's prompt. */

import { call, HubError } from '../stores/api';
import type { Params } from '../wire';

type Prompting = 'claudecode.send' | 'claudecode.chat_async';
type Calls = (method: Prompting, params: Params<Prompting>) => Promise<unknown>;

/**
 * A turn may begin or end between the look and the word: then it is said the other way. Twice at most, so that a session whose turns
 * come and go is not talked to for ever.
 */
export async function sendPrompt(
  session: string,
  words: string,
  inTurn: boolean,
  by: Calls = call,
): Promise<'sent' | 'begun'> {
  for (let tries = 3; ; tries -= 1) {
    try {
      if (inTurn) await by('claudecode.send', { session_id: session, prompt: words });
      else await by('claudecode.chat_async', { session_id: session, prompt: words });
      return inTurn ? 'sent' : 'begun';
    } catch (error) {
      const other = error instanceof HubError && error.kind === (inTurn ? 'no_turn' : 'turn_in_progress');
      if (!other || tries === 1) throw error;
      inTurn = !inTurn;
    }
  }
}
