/** Notes in the timeline for system events of the agent and the hub. Most system events have none. */

import { object, text } from '../pure/fields';
import type { Fields } from '../wire';

/** What a hook of the session decided, or why it failed. */
function hookNote(data: Fields): string {
  const about = text(data['tool_name']) || text(data['event']);
  const reason = text(data['reason']).slice(0, 500);
  switch (text(data['status'])) {
    case 'denied':
      return `a hook denied ${about}: ${reason}`;
    case 'asked':
      return `a hook requires approval of ${about}: ${reason}`;
    case 'blocked':
      return `a hook objects to ${about}: ${reason}`;
    case 'stopped':
      return `a hook stopped the turn at ${about}: ${reason}`;
    default:
      return `the hook ${text(data['command']).slice(0, 200)} failed for ${about}: ${reason}`;
  }
}

/** The note for a system event; null if it is not worth a line. */
export function systemNote(subtype: string, data: Fields): { words: string; trouble: boolean } | null {
  switch (subtype) {
    case 'stalled':
      return { words: `no response from the model for ${Number(data['quiet_secs'] ?? 0)} s`, trouble: true };
    case 'api_retry':
      return {
        words: `API error, attempt ${Number(data['attempt'] ?? 0)} of ${Number(data['max_retries'] ?? 0)}`,
        trouble: true,
      };
    case 'rate_limit_event':
      return object(data['rate_limit_info'])['status'] === 'rejected'
        ? { words: 'rate-limited by the API', trouble: true }
        : null;
    case 'compact_boundary':
      return { words: 'conversation compacted', trouble: false };
    case 'task_notification':
      return {
        words: `background task ${text(data['status'])} ${text(data['summary']).slice(0, 300)}`,
        trouble: data['status'] === 'failed',
      };
    case 'informational':
      return data['level'] === 'warning' ? { words: text(data['content']).slice(0, 500), trouble: true } : null;
    case 'ask_denied':
    case 'ask_mismatch':
      return { words: 'a request that could not be shown was denied', trouble: true };
    case 'permission_denied':
      return { words: 'Claude Code denied a call', trouble: true };
    case 'hook':
      return { words: hookNote(data), trouble: true };
    case 'rubbish':
      return { words: 'the agent wrote an unreadable line', trouble: true };
    default:
      return null;
  }
}
