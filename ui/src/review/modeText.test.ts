import { expect, test } from 'vitest';
import { modeText } from './modeText';

test('only a file that is not plain, or whose mode changed, has a text', () => {
  expect(modeText({})).toBe('');
  expect(modeText({ new_mode: 'executable' })).toBe('executable');
  expect(modeText({ old_mode: 'link' })).toBe('symbolic link');
  expect(modeText({ old_mode: 'link', new_mode: 'link' })).toBe('symbolic link');
  expect(modeText({ old_mode: 'plain', new_mode: 'link' })).toBe('was plain file, now symbolic link');
});
