import { expect, test } from 'vitest';
import { inBulk, unselectable } from './bulk';

const tool = (input: object, more: object = {}) => inBulk({ kind: 'tool', tool_name: 'Bash', input, ...more } as never);

test('a short input is shown with every field', () => {
  expect(tool({ command: 'npm test', timeout: 5 })).toEqual({
    kind: 'shown',
    tool: 'Bash',
    fields: [
      { name: '', value: 'npm test' },
      { name: 'timeout', value: '5' },
    ],
  });
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

test('invisible characters are written as escapes, and the escapes count', () => {
  expect(tool({ command: 'ls\u202e\u00a0x' })).toMatchObject({ fields: [{ value: 'ls\\u{202e}\\u{a0}x' }] });
  expect(tool({ command: '\u200b'.repeat(100) })).toMatchObject({ kind: 'apart' });
});

test('plans, questions and budget requests are answered one by one', () => {
  for (const kind of ['plan', 'question', 'budget'] as const) {
    expect(unselectable({ kind })).toMatch(/answered one by one/);
    expect(inBulk({ kind, tool_name: 'x', input: {} })).toMatchObject({ kind: 'apart' });
  }
  expect(unselectable({ kind: 'tool' })).toBeNull();
});
