import { expect, test } from 'vitest';
import { headlineIsWhole, inBulk, unselectable } from './bulk';

const tool = (input: object, more: object = {}) => inBulk({ kind: 'tool', tool_name: 'Bash', input, ...more } as never);

test('a short input is listed', () => {
  expect(tool({ command: 'npm test', timeout: 5 })).toEqual({ kind: 'shown' });
});

test('a call with a grave risk is allowed on its own', () => {
  const risks = [{ kind: 'network' }, { kind: 'force_push' }];
  expect(tool({ command: 'git push -f' }, { risks })).toEqual({
    kind: 'apart',
    why: 'Force push: allow it on its own. Open it.',
  });
  expect(tool({ command: 'curl a.example' }, { risks: [{ kind: 'network' }] })).toEqual({ kind: 'shown' });
});

test('an input that does not fit has no row, instead of a truncated one', () => {
  const apart = { kind: 'apart', why: 'Too long to show here in full. Open it.' };
  expect(tool({ command: `true ${'x'.repeat(700)}; rm -rf /` })).toEqual(apart);
  expect(tool({ command: 'true', [`x${'y'.repeat(700)}`]: 1 })).toEqual(apart);
  expect(tool({ command: `true${'\n'.repeat(20)}rm` })).toEqual(apart);
  expect(tool(Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`f${i}`, i])))).toEqual(apart);
  expect(tool({ command: 'true' }, { truncated: true })).toEqual(apart);
  expect(tool({ command: 'true' }, { tool_name: 'x'.repeat(700) })).toEqual(apart);
});

test('the escapes of invisible characters count', () => {
  expect(tool({ command: '\u200b'.repeat(100) })).toMatchObject({ kind: 'apart' });
});

test('plans, questions and budget requests are answered one by one', () => {
  for (const kind of ['plan', 'question', 'budget'] as const) {
    expect(unselectable({ kind })).toMatch(/answered one by one/);
    expect(inBulk({ kind, tool_name: 'x', input: {} })).toMatchObject({ kind: 'apart' });
  }
  expect(unselectable({ kind: 'tool' })).toBeNull();
});

test('a headline shows the whole input only of a short command without other fields', () => {
  const whole = (input: object, tool_name = 'Bash') => headlineIsWhole({ tool_name, input } as never);
  expect(whole({ command: 'npm test' })).toBe(true);
  expect(whole({ command: 'npm test', timeout: 5 })).toBe(false);
  expect(whole({ command: 'npm  test' })).toBe(false);
  expect(whole({ command: 'npm test\nrm -r x' })).toBe(false);
  expect(whole({ command: `true ${'x'.repeat(300)}` })).toBe(false);
  expect(whole({ command: 'npm test' }, 'PowerShell')).toBe(false);
  expect(whole({ command: 7 })).toBe(false);
  expect(whole({})).toBe(false);
});
