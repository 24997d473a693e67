/** Sends a message to a session: to its running turn, or as the prompt of the next turn. */

import { call, HubError } from '../stores/api';
import type { Params } from '../wire';

type Prompting = 'claudecode.send' | 'claudecode.chat_async';
type Calls = (method: Prompting, params: Params<Prompting>) => Promise<unknown>;

/**
 * A turn may start or end before the message arrives. Then the message is sent the other way, at most twice.
 */
export async function sendPrompt(
  session: string,
  text: string,
  inTurn: boolean,
  send: Calls = call,
): Promise<'sent' | 'started'> {
  for (let tries = 3; ; tries -= 1) {
    try {
      if (inTurn) await send('claudecode.send', { session_id: session, prompt: text });
      else await send('claudecode.chat_async', { session_id: session, prompt: text });
      return inTurn ? 'sent' : 'started';
    } catch (error) {
      const other = error instanceof HubError && error.kind === (inTurn ? 'no_turn' : 'turn_in_progress');
      if (!other || tries === 1) throw error;
      inTurn = !inTurn;
    }
  }
}
