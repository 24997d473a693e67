import { expect, test } from 'vitest';
import type { SessionView } from '../wire';
import { objectOf, sessionOf } from './rules';

test('a session is named or left out', () => {
  const sessions = [{ id: 'x', name: 'lead' }] as SessionView[];
  expect([sessionOf(' lead ', sessions), sessionOf('', sessions), sessionOf('y', sessions)]).toEqual([
    { session_id: 'x' },
    {},
    { session_id: 'y' },
  ]);
});

test('an input is an object', () => {
  expect(objectOf('{"a": 1}')).toEqual({ input: { a: 1 } });
  expect(objectOf(' ')).toEqual({ input: {} });
  for (const wrong of ['[]', 'null', '1', '{']) expect(objectOf(wrong)).toHaveProperty('wrong');
});
