/** How an approval was resolved, as text. */

import type { Approval, Decider, Decision } from '../wire';

/** The session of an approval or of an audit entry: its path, such as `lead/worker`, or else its name. */
export function sessionPath(about: { session_path?: string | undefined; session_name?: string | undefined }): string {
  return about.session_path ?? about.session_name ?? '';
}

/** The session of an approval or of an audit entry, and its host if there are several. */
export function sessionLabel(about: Parameters<typeof sessionPath>[0] & { host?: string | undefined }): string {
  return about.host === undefined ? sessionPath(about) : `${sessionPath(about)} on ${about.host}`;
}

/** How an approval was resolved, and by whom. `name` gives the name of an actor. */
export function outcomeText(
  approval: Pick<Approval, 'status' | 'decision'> & Partial<Pick<Approval, 'kind'>>,
  name: (actor: Decider) => string,
): string {
  const { decision } = approval;
  switch (approval.status) {
    case 'pending':
      return 'Open';
    case 'expired':
      return 'Expired without an answer';
    case 'withdrawn':
      return 'Withdrawn: the agent stopped waiting for it';
    default:
      // The answers to a question are not an edit of its input.
      if (approval.kind === 'question' && decision?.approve && decision.updated_input)
        return `Answered by ${name(decision.by)}`;
      return `${approval.status === 'allowed' ? 'Allowed' : 'Denied'}${decisionText(decision, name)}`;
  }
}

function decisionText(decision: Decision | undefined, name: (actor: Decider) => string): string {
  if (!decision) return '';
  if (decision.right === 'rule') return ` by rule ${decision.rule ?? ''}`.trimEnd();
  const edited = decision.approve && decision.updated_input ? ' with changes' : '';
  const stopped = decision.interrupt ? ' and stopped' : '';
  return `${edited}${stopped} by ${name(decision.by)}`;
}

/** The status of a resolved approval in a word or two. */
export function statusWord(status: string): string {
  return status === 'expired' ? 'expired, no answer' : status;
}
