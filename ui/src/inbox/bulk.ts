/** Which approvals can be answered together: tool calls with a short input and no grave risk. Other approvals are answered one by one. */

import { actionOf } from '../pure/action';
import { needsConfirmation, RISKS } from '../pure/risks';
import { visible } from '../pure/text';
import type { Approval, Json } from '../wire';

/** The size of a row. */
const CHARACTERS = 600;
const LINES = 12;

export type InBulk = { kind: 'shown' } | { kind: 'apart'; why: string };

const APART = {
  plan: 'Plans are answered one by one. Open it.',
  question: 'Questions are answered one by one. Open it.',
  budget: 'Budget requests are answered one by one. Open it.',
} as const;

/** Why this approval cannot be selected; null if it can. */
export function unselectable(approval: Pick<Approval, 'kind'>): string | null {
  return approval.kind === 'tool' ? null : APART[approval.kind];
}

/** Whether an approval can be allowed in a list, or the reason why not. */
export function inBulk(approval: Pick<Approval, 'kind' | 'tool_name' | 'input' | 'truncated' | 'risks'>): InBulk {
  const why = unselectable(approval);
  if (why !== null) return { kind: 'apart', why };
  const fields = Object.entries(approval.input).map(([name, value]) => [visible(name), visible(written(value))]);
  const text = [visible(approval.tool_name), ...fields.flat()];
  const characters = text.reduce((sum, one) => sum + one.length, 0);
  const lines = text.reduce((sum, one) => sum + one.split('\n').length - 1, fields.length);
  if (approval.truncated || characters > CHARACTERS || lines > LINES)
    return { kind: 'apart', why: 'Too long to show here in full. Open it.' };
  const grave = needsConfirmation(approval.risks ?? [])[0];
  if (grave !== undefined) return { kind: 'apart', why: `${RISKS[grave]}: allow it on its own. Open it.` };
  return { kind: 'shown' };
}

/** Whether the headline of a call shows its whole input: a short command and nothing else. A long list then stays small. */
export function headlineIsWhole({ tool_name, input }: Pick<Approval, 'tool_name' | 'input'>): boolean {
  const { words, code, detail } = actionOf({ tool_name, input });
  const [only, ...others] = Object.entries(input);
  return (
    tool_name === 'Bash' &&
    words === 'Run' &&
    others.length === 0 &&
    only?.[0] === 'command' &&
    only[1] === code &&
    detail === ''
  );
}

function written(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
