import { describe, expect, it } from 'vitest';
import type { Approval } from '../wire';
import { groupRows, shownOrder } from './groups';

const approval = (id: string, session_name: string, cwd: string) => ({ id, session_name, cwd }) as Approval;
const names = {
  project: (one: Approval) => one.cwd,
  path: (one: Approval) => (one.session_name === 'worker' ? ['lead', 'worker'] : [one.session_name]),
};
const all = [approval('1', 'lead', 'shop'), approval('2', 'other', 'site'), approval('3', 'worker', 'shop')];
const shape = (rows: ReturnType<typeof groupRows>) =>
  rows.map((row) => (row.kind === 'group' ? `${row.name} (${row.count})` : row.key));

describe('groups of approvals', () => {
  it('stand where their first approval stands', () => {
    expect(shape(groupRows(all, 'none', names))).toEqual(['1', '2', '3']);
    expect(shape(groupRows(all, 'project', names))).toEqual(['shop (2)', '1', '3', 'site (1)', '2']);
    expect(shape(groupRows(all, 'tree', names))).toEqual(['lead (2)', '1', '3', 'other (1)', '2']);
  });

  it('determine the order of the keys', () => {
    expect(shownOrder(groupRows(all, 'project', names)).map((one) => one.id)).toEqual(['1', '3', '2']);
  });
});
