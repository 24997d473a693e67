/** Budgets of sessions as they are shown: granted, used, reserved for descendants, and left. */

import { money, duration } from '../pure/text';
import type { BudgetView } from '../wire';

export type Resource = keyof BudgetView;
export const RESOURCES: readonly Resource[] = ['cost_usd', 'turns', 'tool_calls', 'wall_secs', 'children'];

export const LABELS: Record<Resource, string> = {
  cost_usd: 'Cost',
  turns: 'Turns',
  tool_calls: 'Tool calls',
  wall_secs: 'Turn time',
  children: 'Descendants',
};

export interface BudgetLine {
  name: Resource;
  limit: number;
  used: number;
  left: number;
  /** Granted to descendants with a budget of their own, and not used by them yet. */
  reserved: number;
  /** The share that is used or reserved, from 0 to 1. */
  usedShare: number;
}

/** The parts of a budget, in a fixed order. */
export function budgetLines(budget: BudgetView | undefined): BudgetLine[] {
  return RESOURCES.flatMap((name) => {
    const view = budget?.[name];
    if (view === undefined) return [];
    const { limit, used, left } = view;
    const reserved = Math.max(0, limit - used - left);
    const usedShare = limit > 0 ? Math.min(1, Math.max(0, 1 - left / limit)) : 1;
    return [{ name, limit, used, left, reserved, usedShare }];
  });
}

/** An amount with its unit. */
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
