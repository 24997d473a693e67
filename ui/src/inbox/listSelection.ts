/** Filters the list of open approvals, and moves the selection along it. */

import { actionOf, actionText } from '../pure/action';
import { sessionLabel } from '../pure/approvalText';
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
      `${sessionLabel(approval)} ${approval.tool_name} ${approval.kind} ${actionText(actionOf(approval))} ${inputLine(approval.tool_name, approval.input)} ${input} ${approval.reason ?? ''}`.toLowerCase();
    texts.set(approval, text);
  }
  return text;
}

/** The approvals that contain every word: in the names of session and tool, or in the input. */
export function filtered(open: Approval[], words: string): Approval[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return open;
  return open.filter((approval) => {
    const text = textOf(approval);
    return wanted.every((word) => text.includes(word));
  });
}

/**
 * The approval one step before or after another in the list. `earlier` is the order of the list when it still contained the other one:
 * from an approval that was resolved, the selection moves to the nearest one that is left.
 */
export function stepped(
  list: readonly Pick<Approval, 'id'>[],
  from: string | null,
  step: 1 | -1,
  earlier: readonly string[] = [],
): string | null {
  const ids = list.map(({ id }) => id);
  if (from === null) return (step === 1 ? ids[0] : ids.at(-1)) ?? null;
  const at = ids.indexOf(from);
  if (at >= 0) return ids[Math.min(ids.length - 1, Math.max(0, at + step))]!;
  const left = new Set(ids);
  for (let near = earlier.indexOf(from); near >= 0 && near < earlier.length; near += step)
    if (left.has(earlier[near]!)) return earlier[near]!;
  return (step === 1 ? ids.at(-1) : ids[0]) ?? null;
}

/** The approval to show after this one is answered: the next one, or else the previous one. */
export function nextOpen(
  list: readonly Pick<Approval, 'id'>[],
  answered: string,
  earlier: readonly string[] = list.map(({ id }) => id),
): string | null {
  return stepped(
    list.filter((one) => one.id !== answered),
    answered,
    1,
    earlier,
  );
}
