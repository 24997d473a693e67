import { expect, test } from 'vitest';
import type { TemplateView } from '../wire';
import { costOf, filled, needsTemplate, refilledField, settings, unfilled, type StartForm } from './startForm';

const EMPTY: StartForm = {
  prompt: '',
  working_dir: '/here',
  model: '',
  permission_mode: 'default',
  policy: 'own_course',
  cost: '',
  worktree: false,
};

const TEMPLATE: TemplateView = {
  name: 'fix',
  prompt: 'Fix it',
  model: 'opus',
  permission_mode: 'plan',
  policy: 'ask_all',
  budget: { cost_usd: 2, turns: 5 },
  isolation: { type: 'worktree', setup: 'npm ci' },
  saved_at: 0,
};

test('a template fills the form, and keeps what it does not contain', () => {
  expect(filled({ ...EMPTY, model: 'haiku' }, { name: 'x', saved_at: 0 })).toEqual(EMPTY);
  expect(filled(EMPTY, TEMPLATE)).toEqual({
    ...EMPTY,
    prompt: 'Fix it',
    model: 'opus',
    permission_mode: 'plan',
    policy: 'ask_all',
    cost: '2',
    worktree: true,
  });
});

test('the parts of a template that the form does not show are kept', () => {
  const form = { ...filled(EMPTY, TEMPLATE), cost: '3' };
  expect(settings(form, TEMPLATE)).toEqual({
    permission_mode: 'plan',
    policy: 'ask_all',
    model: 'opus',
    isolation: { type: 'worktree', setup: 'npm ci' },
    budget: { cost_usd: 3, turns: 5 },
  });
});

test('what a person clears in the form is not sent', () => {
  const form = { ...filled(EMPTY, TEMPLATE), model: ' ', cost: '', worktree: false };
  expect(settings(form, TEMPLATE)).toEqual({ permission_mode: 'plan', policy: 'ask_all', budget: { turns: 5 } });
  expect(settings(EMPTY)).toEqual({ permission_mode: 'default', policy: 'own_course' });
});

test('a field that the hub would fill in again is reported', () => {
  const servers = { ...TEMPLATE, mcp_servers: ['db'] };
  const form = filled(EMPTY, servers);
  expect([needsTemplate(TEMPLATE), needsTemplate(servers), needsTemplate()]).toEqual([false, true, false]);
  expect(refilledField(form, servers)).toBe(null);
  expect(refilledField({ ...form, prompt: ' ' }, servers)).toBe('prompt');
  expect(refilledField({ ...form, model: '' }, servers)).toBe('model');
  expect(refilledField({ ...form, worktree: false }, servers)).toBe('isolation');
  expect(refilledField({ ...form, cost: '' }, servers)).toBe(null);
  expect(refilledField({ ...form, cost: '' }, { ...servers, budget: { cost_usd: 2 } })).toBe('budget');
  expect(refilledField({ ...form, prompt: '' }, TEMPLATE)).toBe(null);
});

test('without its template, the form has its earlier values and what the person changed', () => {
  const before = { ...EMPTY, model: 'haiku' };
  const form = { ...filled(before, TEMPLATE), cost: '7' };
  expect(unfilled(form, before, TEMPLATE)).toEqual({ ...before, cost: '7' });
});

test('an amount has a point or a comma', () => {
  expect(['2', '2.5', '2,50', '.5', '$3', '1000'].map(costOf)).toEqual([2, 2.5, 2.5, 0.5, 3, 1000]);
  expect(['', '1,000', 'two', '1.2.3', '-1'].map(costOf)).toEqual([null, null, null, null, null]);
});
