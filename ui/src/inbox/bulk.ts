/** Which approvals can be allowed together: tool calls whose whole input fits into a row of the list. Everything else is opened and answered by itself. */

import { visible } from '../pure/text';
import type { Approval, Json } from '../wire';

/** So much fits into a row. */
const CHARACTERS = 600;
const LINES = 12;

/** A field of the input, complete and with hidden characters written out. */
export interface Field {
  /** Empty for the command of a shell. */
  name: string;
  value: string;
}

export type InBulk = { kind: 'shown'; tool: string; fields: Field[] } | { kind: 'apart'; why: string };

const APART = {
  plan: 'A plan is answered by itself: open it.',
  question: 'A question is answered by itself: open it.',
  budget: 'A budget request is answered by itself: open it.',
} as const;

/** Why this approval cannot be selected; null if it can. */
export function unselectable(approval: Pick<Approval, 'kind'>): string | null {
  return approval.kind === 'tool' ? null : APART[approval.kind];
}

/** The whole input of an approval as a row, or why it has none. */
export function inBulk(approval: Pick<Approval, 'kind' | 'tool_name' | 'input' | 'truncated'>): InBulk {
  const why = unselectable(approval);
  if (why !== null) return { kind: 'apart', why };
  const tool = visible(approval.tool_name);
  const fields = Object.entries(approval.input).map(([name, value]) => ({
    name: approval.tool_name === 'Bash' && name === 'command' ? '' : visible(name),
    value: visible(written(value)),
  }));
  const text = [tool, ...fields.flatMap(({ name, value }) => [name, value])];
  const characters = text.reduce((sum, one) => sum + one.length, 0);
  const lines = text.reduce((sum, one) => sum + one.split('\n').length - 1, fields.length);
  if (approval.truncated || characters > CHARACTERS || lines > LINES)
    return { kind: 'apart', why: 'Not shown in full: open it.' };
  return { kind: 'shown', tool, fields };
}

function written(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
