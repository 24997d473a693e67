/** Which approvals can be answered together: tool calls whose whole input fits into a row. Other approvals are answered one by one. */

import { visible } from '../pure/text';
import type { Approval, Json } from '../wire';

/** The size of a row. */
const CHARACTERS = 600;
const LINES = 12;

/** A field of the input, complete, with invisible characters as escapes. */
export interface Field {
  /** Empty for a shell command. */
  name: string;
  value: string;
}

export type InBulk = { kind: 'shown'; tool: string; fields: Field[] } | { kind: 'apart'; why: string };

const APART = {
  plan: 'Plans are answered one by one. Open it.',
  question: 'Questions are answered one by one. Open it.',
  budget: 'Budget requests are answered one by one. Open it.',
} as const;

/** Why this approval cannot be selected; null if it can. */
export function unselectable(approval: Pick<Approval, 'kind'>): string | null {
  return approval.kind === 'tool' ? null : APART[approval.kind];
}

/** The whole input of an approval as a row, or the reason why it has none. */
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
    return { kind: 'apart', why: 'Too long to show here in full. Open it.' };
  return { kind: 'shown', tool, fields };
}

function written(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
