import { expect, test } from 'vitest';
import { Refused } from '../lib/api';
import type { ErrorKind } from '../wire';
import { say } from './talk';

const hub = (answers: (ErrorKind | null)[]) => {
  const called: string[] = [];
  const by = async (method: string) => {
    called.push(method);
    const refused = answers.shift();
    if (refused) throw new Refused(refused, refused);
    return {};
  };
  return { by, called };
};

test('words go into the turn, or begin one', async () => {
  expect(await say('s', 'x', true, hub([null]).by)).toBe('sent');
  expect(await say('s', 'x', false, hub([null]).by)).toBe('begun');
});

test('a turn that ended meanwhile is followed by the next, one that began is joined', async () => {
  const over = hub(['no_turn', null]);
  expect(await say('s', 'x', true, over.by)).toBe('begun');
  expect(over.called).toEqual(['claudecode.send', 'claudecode.chat_async']);
  expect(await say('s', 'x', false, hub(['turn_in_progress', null]).by)).toBe('sent');
});

test('what is refused for another reason, or again and again, is told', async () => {
  await expect(say('s', 'x', true, hub(['forbidden']).by)).rejects.toThrow('forbidden');
  const flickering = hub(['no_turn', 'turn_in_progress', 'no_turn', null]);
  await expect(say('s', 'x', true, flickering.by)).rejects.toThrow('no_turn');
  expect(flickering.called).toHaveLength(3);
});
