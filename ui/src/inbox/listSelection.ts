/** Filters the list of open approvals, and moves the selection along it. */

import { compareApprovals, type ArrivalNumber, type Ordered } from '../pure/approvalOrder';
import { inputLine } from '../pure/toolInput';
import type { Approval } from '../wire';

/** The filter searches this many characters of an input. */
const SEARCHED = 20_000;
const texts = new WeakMap<Approval, string>();

function textOf(approval: Approval): string {
  let text = texts.get(approval);
  if (text === undefined) {
    const input = JSON.stringify(approval.input).slice(0, SEARCHED);
    text =
      `${approval.session_name} ${approval.tool_name} ${approval.kind} ${inputLine(approval.tool_name, approval.input)} ${input} ${approval.reason ?? ''}`.toLowerCase();
    texts.set(approval, text);
  }
  return text;
}

/** The approvals that contain every word: in the names of session and tool, or in the input. */
export function filtered(open: Approval[], words: string, path: (id: string) => string[] = () => []): Approval[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return open;
  return open.filter((approval) => {
    const text = textOf(approval);
    const above = path(approval.session_id).join(' ').toLowerCase();
    return wanted.every((word) => text.includes(word) || above.includes(word));
  });
}

/** The approval one step before or after another, which may have left the list: then its position in the order counts. */
export function stepped(list: Ordered[], from: Ordered | null, step: 1 | -1, number: ArrivalNumber): string | null {
  if (list.length === 0) return null;
  if (from === null) return (step === 1 ? list[0] : list.at(-1))!.id;
  const at = list.findIndex((one) => one.id === from.id);
  if (at >= 0) return list[Math.min(list.length - 1, Math.max(0, at + step))]!.id;
  const after = list.findIndex((one) => compareApprovals(one, from, number) > 0);
  if (step === 1) return (after < 0 ? list.at(-1) : list[after])!.id;
  return (after < 0 ? list.at(-1) : list[Math.max(0, after - 1)])!.id;
}

/** The approval to show after this one is answered: the next one, or else the previous one. */
export function nextOpen(list: Ordered[], answered: Ordered, number: ArrivalNumber): string | null {
  const others = list.filter((one) => one.id !== answered.id);
  return stepped(others, answered, 1, number);
}
