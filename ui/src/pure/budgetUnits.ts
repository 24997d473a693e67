/** The units of budgets, as budget requests name them. */

export const BUDGET_UNITS: Record<string, string> = {
  cost_usd: 'US dollars',
  turns: 'turns',
  tool_calls: 'tool calls',
  wall_secs: 'seconds',
  children: 'sessions',
};
