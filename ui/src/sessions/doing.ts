/** What a session does now, in one line. */

import { actionOf, actionText } from '../pure/action';
import type { RunningCall, SessionView } from '../wire';
import { sessionState, type State } from './statusText';

/** The field of an input that the hub's summary of a call comes from. */
const SUMMARISED: Record<string, string> = {
  Bash: 'command',
  Monitor: 'command',
  Edit: 'file_path',
  MultiEdit: 'file_path',
  Write: 'file_path',
  Read: 'file_path',
  NotebookEdit: 'notebook_path',
  WebFetch: 'url',
  WebSearch: 'query',
  Glob: 'pattern',
  Grep: 'pattern',
};

function callText({ tool_name, summary }: RunningCall, cwd: string): string {
  const field = SUMMARISED[tool_name] ?? 'description';
  return actionText(actionOf({ tool_name, input: summary === '' ? {} : { [field]: summary }, cwd }));
}

type Shown = Pick<SessionView, 'status' | 'attention' | 'current_action' | 'working_dir'>;

/** The state of a session, with its current action. */
export function doing(session: Shown, operator = 'you'): State {
  const state = sessionState(session);
  const now = session.current_action;
  if (now === undefined || state.tone === 'trouble') return state;
  const more = (count: number | undefined) => (count ? ` and ${count} more` : '');
  switch (now.type) {
    case 'starting':
      return { ...state, text: 'starting' };
    case 'thinking':
      return { ...state, text: state.tone === 'works' ? 'thinking' : state.text };
    case 'tools':
      return {
        ...state,
        text: now.calls.map((call) => callText(call, session.working_dir)).join('; ') + more(now.more),
      };
    case 'approval': {
      const who = now.asked_of.kind === 'operator' ? operator : 'an agent';
      const what = now.kind === 'budget' ? 'a larger budget' : callText(now.call, session.working_dir);
      return { tone: 'asks', text: `waiting for ${who}: ${what}${more(now.more)}` };
    }
  }
}
