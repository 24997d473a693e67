import { expect, test } from 'vitest';
import type { call } from './api';

// svelte-check fails if a line below `@ts-expect-error` compiles.
test('a wrong method, parameter or result does not compile', () => {
  const calls = (send: typeof call) => [
    // @ts-expect-error -- there is no such method
    () => send('claudecode.lists'),
    // @ts-expect-error -- there is no such parameter
    () => send('loopback.get', { approval_id: 'a', verbose: true }),
    // @ts-expect-error -- a parameter is required
    () => send('loopback.get'),
    // @ts-expect-error -- there is no such result
    async () => void (await send('loopback.pending')).rows,
    async () => (await send('loopback.pending')).approvals[0]?.tool_name,
  ];
  expect(calls).toHaveLength(1);
});
