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
  const given = answer.answers ? `. ${answersText(Object.values(answer.answers).map(plain))}` : '';
  return `${verb(approval, answer).done}: ${call} (${visible(sessionLabel(approval))})${given}${stopped}${reason}${rule}`;
}

/** What happens when an answer is sent that waits before. */
export function announcement(
  approval: Pick<Approval, 'tool_name' | 'input' | 'kind' | 'session_name' | 'session_path'>,
  answer: Answer,
): string {
  const { now, done } = verb(approval, answer);
  return `${now}${confirmation(approval, answer, 0).slice(done.length)}`;
}

function answersText(answers: string[]): string {
  const text = truncate(answers.join('; '), LONGEST);
  return visible(`${answers.length === 1 ? 'Answer' : 'Answers'}: ${text.text}${text.left > 0 ? '…' : ''}`);
}

function verb(approval: Pick<Approval, 'kind'>, answer: Answer): { now: string; done: string } {
  if (!answer.approve) return { now: 'Denying', done: 'Denied' };
  if (approval.kind === 'question' && answer.answers) return { now: 'Answering', done: 'Answered' };
  if (approval.kind === 'budget') return { now: 'Granting', done: 'Granted' };
  if (answer.updated_input) return { now: 'Allowing with changes', done: 'Allowed with changes' };
  return { now: 'Allowing', done: 'Allowed' };
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
