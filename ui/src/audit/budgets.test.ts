import { expect, test } from 'vitest';
import { amountText, budgetLines } from './budgets';

test('what is neither used nor left is set aside for those below', () => {
  expect(budgetLines({ turns: { limit: 10, used: 2, left: 5 } })).toEqual([
    { name: 'turns', limit: 10, used: 2, left: 5, aside: 3, part: 0.5 },
  ]);
});

test('what was overdrawn leaves nothing, and nothing odd is shown', () => {
  expect(budgetLines({ cost_usd: { limit: 1, used: 1.2, left: 0 } })[0]).toMatchObject({ aside: 0, part: 1 });
  expect(budgetLines(undefined)).toEqual([]);
  expect(budgetLines({ turns: { limit: 0, used: 0, left: 0 } })[0]).toMatchObject({ aside: 0, part: 1 });
});

test('amounts have their unit', () => {
  expect([amountText('cost_usd', 2), amountText('wall_secs', 90), amountText('tool_calls', 1)]).toEqual([
    '$2.00',
    '1m 30s',
    '1 call',
  ]);
});
