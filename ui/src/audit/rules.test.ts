import { expect, test } from 'vitest';
import type { SessionView } from '../wire';
import { parseObject, sessionParam } from './rules';

test('a session is given by name or id, or left out', () => {
  const sessions = [{ id: 'x', name: 'lead' }] as SessionView[];
  expect([sessionParam(' lead ', sessions), sessionParam('', sessions), sessionParam('y', sessions)]).toEqual([
    { session_id: 'x' },
    {},
    { session_id: 'y' },
  ]);
});

test('an input must be a JSON object', () => {
  expect(parseObject('{"a": 1}')).toEqual({ input: { a: 1 } });
  expect(parseObject(' ')).toEqual({ input: {} });
  for (const wrong of ['[]', 'null', '1', '{']) expect(parseObject(wrong)).toHaveProperty('wrong');
});
