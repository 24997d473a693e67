import { expect, test } from 'vitest';
import { amountText, budgetLines } from './budgets';

test('the rest, neither used nor left, is reserved for descendants', () => {
  expect(budgetLines({ turns: { limit: 10, used: 2, left: 5 } })).toEqual([
    { name: 'turns', limit: 10, used: 2, left: 5, reserved: 3, usedShare: 0.5 },
  ]);
});

test('an overdrawn budget has nothing left', () => {
  expect(budgetLines({ cost_usd: { limit: 1, used: 1.2, left: 0 } })[0]).toMatchObject({ reserved: 0, usedShare: 1 });
  expect(budgetLines(undefined)).toEqual([]);
  expect(budgetLines({ turns: { limit: 0, used: 0, left: 0 } })[0]).toMatchObject({ reserved: 0, usedShare: 1 });
});

test('amounts have a unit', () => {
  expect([amountText('cost_usd', 2), amountText('wall_secs', 90), amountText('tool_calls', 1)]).toEqual([
    '$2.00',
    '1 min 30 s',
    '1 call',
  ]);
});
