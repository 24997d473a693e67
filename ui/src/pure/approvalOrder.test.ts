import { expect, test } from 'vitest';
import { compareApprovals, type Ordered } from './approvalOrder';

const one = (id: string, created_at: number, more: Partial<Ordered> = {}): Ordered => ({ id, created_at, ...more });
const order = (list: Ordered[], now: number) =>
  list.toSorted((a, b) => compareApprovals(a, b, (id) => id.charCodeAt(0), now)).map(({ id }) => id);

test('approvals whose time runs out come first, the others by age', () => {
  const list = [
    one('a', 10),
    one('b', 10),
    one('c', 5),
    one('d', 20, { expires_at: 1_500 }),
    one('e', 30, { passes_on_at: 1_400, expires_at: 9_000 }),
    one('f', 1, { expires_at: 9_000 }),
  ];
  expect(order(list, 1_000)).toEqual(['e', 'd', 'f', 'c', 'a', 'b']);
  expect(order(list, 0)).toEqual(['f', 'c', 'a', 'b', 'd', 'e']);
});
