import { expect, test } from 'vitest';
import { HELD_FOR, HeldCredentials } from './heldCredentials';

const credential = { token: 'secret', name: 'console-1', hub: 'key' };

test('a credential is returned to its own tab, once', () => {
  const held = new HeldCredentials(() => 0);
  held.keep('tab', credential);
  expect(held.take('other')).toBeNull();
  expect(held.take('tab')).toEqual(credential);
  expect(held.take('tab')).toBeNull();
});

test('a credential that no page takes is deleted', () => {
  let now = 0;
  const held = new HeldCredentials(() => now);
  held.keep('tab', credential);
  now = HELD_FOR - 1;
  held.forgetOld();
  expect(held.size).toBe(1);
  now = HELD_FOR;
  expect(held.take('tab')).toBeNull();
  held.keep('tab', credential);
  now += HELD_FOR;
  held.forgetOld();
  expect(held.size).toBe(0);
});
