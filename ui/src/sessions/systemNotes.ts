/** What a child, or the hub, says besides: which of it is worth a line, and which. Reads fields of whatever kind they turn out to be. */

import { object, text } from '../pure/fields';
import type { Fields } from '../wire';

/** What the child, or the hub, says besides; most of it only distracts. */
export function systemNote(subtype: string, data: Fields): { words: string; trouble: boolean } | null {
  switch (subtype) {
    case 'stalled':
      return { words: `nothing heard from the model for ${Number(data['quiet_secs'] ?? 0)} s`, trouble: true };
    case 'api_retry':
      return {
        words: `the API failed; try ${Number(data['attempt'] ?? 0)} of ${Number(data['max_retries'] ?? 0)}`,
        trouble: true,
      };
    case 'rate_limit_event':
      return object(data['rate_limit_info'])['status'] === 'rejected'
        ? { words: 'rate-limited by the API', trouble: true }
        : null;
    case 'compact_boundary':
      return { words: 'what was said before was shortened (compacted)', trouble: false };
    case 'task_notification':
      return {
        words: `work in the background: ${text(data['status'])} ${text(data['summary']).slice(0, 300)}`,
        trouble: data['status'] === 'failed',
      };
    case 'informational':
      return data['level'] === 'warning' ? { words: text(data['content']).slice(0, 500), trouble: true } : null;
    case 'ask_denied':
    case 'ask_mismatch':
      return { words: 'a question that could not be shown was denied', trouble: true };
    case 'permission_denied':
      return { words: 'Claude Code denied a call itself', trouble: true };
    case 'rubbish':
      return { words: 'the child wrote something that cannot be read', trouble: true };
    default:
      return null;
  }
}
