import { expect, test } from 'vitest';
import type { RiskKind } from '../wire';
import { byGravity, needsConfirmation, RISKS } from './risks';

const marks = (...kinds: RiskKind[]) => kinds.map((kind) => ({ kind }));

test('a call that cannot be undone, or that uses secrets, needs a second step', () => {
  for (const kind of ['runs_downloaded_code', 'force_push', 'credentials', 'privilege'] as const)
    expect(needsConfirmation(marks('network', kind))).toEqual([kind]);
});

test('everyday calls need no second step', () => {
  expect(needsConfirmation([])).toEqual([]);
  expect(needsConfirmation(marks('network', 'outside_project', 'history_rewrite', 'unclear'))).toEqual([]);
});

test('a recursive delete needs a second step if it may reach outside the project', () => {
  expect(needsConfirmation(marks('recursive_delete'))).toEqual([]);
  expect(needsConfirmation(marks('recursive_delete', 'outside_project'))).toEqual(['recursive_delete']);
  expect(needsConfirmation(marks('unclear', 'recursive_delete'))).toEqual(['recursive_delete']);
});

test('several marks of one kind are named once, the gravest kind first', () => {
  expect(needsConfirmation(marks('credentials', 'credentials', 'force_push'))).toEqual(['force_push', 'credentials']);
});

test('the gravest mark comes first, and every kind has a place', () => {
  expect(byGravity(marks('network', 'unclear', 'force_push')).map((mark) => mark.kind)).toEqual([
    'force_push',
    'unclear',
    'network',
  ]);
  const all = Object.keys(RISKS) as RiskKind[];
  expect(byGravity([...marks(...all), ...marks('other')]).at(0)?.kind).toBe('runs_downloaded_code');
  expect(byGravity(marks(...all)).at(-1)?.kind).toBe('other');
});
