/** The confirmation of an answer: what was answered, and how. */

import { sessionLabel } from '../pure/approvalText';
import { plain } from '../pure/fields';
import { truncate, visible } from '../pure/text';
import { actionOf, actionText } from '../pure/action';
import type { Approval, ApprovalStatus, Decider, Decision } from '../wire';
import type { Answer } from './answering.svelte';

const LONGEST = 160;

/** A call in short. */
export function callText({ tool_name, input, kind }: Pick<Approval, 'tool_name' | 'input' | 'kind'>): string {
  if (kind === 'budget') return `budget request (${plain(input['limit'])})`;
  if (kind === 'plan') return 'plan';
  const line = truncate(actionText(actionOf({ tool_name, input, kind })), LONGEST);
  return visible(`${line.text}${line.left > 0 ? '…' : ''}`);
}

/** The confirmation of an answer. */
export function confirmation(
  approval: Pick<Approval, 'tool_name' | 'input' | 'kind' | 'session_name' | 'session_path'>,
  answer: Answer,
  resolved: number,
): string {
  const call = callText(
    answer.approve && answer.updated_input && approval.kind !== 'budget'
      ? { ...approval, input: answer.updated_input }
      : approval,
  );
  const reason = answer.message === undefined ? '' : `. Reason: ${visible(truncate(answer.message, LONGEST).text)}`;
  const stopped = answer.interrupt ? ', and stopped the agent' : '';
  const rule = answer.remember
    ? `. Rule added: ${visible(answer.remember.rule)}${resolved > 0 ? `; it resolved ${resolved} more` : ''}`
    : '';
  return `${done(approval, answer)}: ${call} (${visible(sessionLabel(approval))})${stopped}${reason}${rule}`;
}

function done(approval: Pick<Approval, 'kind'>, answer: Answer): string {
  if (!answer.approve) return 'Denied';
  if (approval.kind === 'question' && answer.answers) return 'Answered';
  if (approval.kind === 'budget') return 'Granted';
  return answer.updated_input ? 'Allowed with changes' : 'Allowed';
}

/** Who answered first, for an answer that came too late. */
export function tooLate(
  status: ApprovalStatus,
  decision: Decision | undefined,
  name: (actor: Decider) => string,
): string {
  const by = decision ? ` by ${name(decision.by)}` : '';
  return `Your answer came too late. The approval was already ${status}${by}.`;
}
