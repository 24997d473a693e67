/** Limits of sessions, as they are shown: what was given, what is used, what is set aside for those below, what is left. */

import { money, duration } from '../pure/text';
import type { BudgetView } from '../wire';

export type Resource = keyof BudgetView;
export const RESOURCES: readonly Resource[] = ['cost_usd', 'turns', 'tool_calls', 'wall_secs', 'children'];

export const LABELS: Record<Resource, string> = {
  cost_usd: 'Cost',
  turns: 'Turns',
  tool_calls: 'Tool calls',
  wall_secs: 'Time of its turns',
  children: 'Sessions below',
};

export interface BudgetLine {
  name: Resource;
  limit: number;
  used: number;
  left: number;
  /** Given to those below that have a limit of their own, and not used by them yet. */
  aside: number;
  /** How much of it cannot be used any more, from 0 to 1. */
  part: number;
}

/** The limits there are, in an order that does not change. */
export function budgetLines(budget: BudgetView | undefined): BudgetLine[] {
  return RESOURCES.flatMap((name) => {
    const view = budget?.[name];
    if (view === undefined) return [];
    const { limit, used, left } = view;
    const aside = Math.max(0, limit - used - left);
    const part = limit > 0 ? Math.min(1, Math.max(0, 1 - left / limit)) : 1;
    return [{ name, limit, used, left, aside, part }];
  });
}

/** So much of it, with its unit. */
export function amountText(name: Resource, value: number): string {
  switch (name) {
    case 'cost_usd':
      return money(value);
    case 'wall_secs':
      return duration(value);
    case 'turns':
      return `${value.toLocaleString('en')} ${value === 1 ? 'turn' : 'turns'}`;
    case 'tool_calls':
      return `${value.toLocaleString('en')} ${value === 1 ? 'call' : 'calls'}`;
    case 'children':
      return `${value.toLocaleString('en')} ${value === 1 ? 'session' : 'sessions'}`;
  }
}
