import { expect, test } from 'vitest';
import { HubError } from '../stores/api';
import type { ErrorKind } from '../wire';
import { sendPrompt } from './sendPrompt';

const hub = (answers: (ErrorKind | null)[]) => {
  const called: string[] = [];
  const by = async (method: string) => {
    called.push(method);
    const refused = answers.shift();
    if (refused) throw new HubError(refused, refused);
    return {};
  };
  return { by, called };
};

test('a message goes into the running turn, or starts one', async () => {
  expect(await sendPrompt('s', 'x', true, hub([null]).by)).toBe('sent');
  expect(await sendPrompt('s', 'x', false, hub([null]).by)).toBe('started');
});

test('if the turn ended meanwhile the message starts the next one, and if one started it joins it', async () => {
  const over = hub(['no_turn', null]);
  expect(await sendPrompt('s', 'x', true, over.by)).toBe('started');
  expect(over.called).toEqual(['claudecode.send', 'claudecode.chat_async']);
  expect(await sendPrompt('s', 'x', false, hub(['turn_in_progress', null]).by)).toBe('sent');
});

test('another error, or repeated failure, is reported', async () => {
  await expect(sendPrompt('s', 'x', true, hub(['forbidden']).by)).rejects.toThrow('forbidden');
  const flickering = hub(['no_turn', 'turn_in_progress', 'no_turn', null]);
  await expect(sendPrompt('s', 'x', true, flickering.by)).rejects.toThrow('no_turn');
  expect(flickering.called).toHaveLength(3);
});
