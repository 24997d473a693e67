import { expect, test } from 'vitest';
import type { Json } from '../wire';
import { fileLines, promptText } from './promptText';

test('a prompt shows the name, type and size of its files, not their contents', () => {
  const source = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo' };
  const content: Json = [
    { type: 'text', text: 'look' },
    { type: 'image', name: 'a.png', bytes: 12345, source },
    { type: 'file', name: 'b.md', bytes: 3, media_type: 'text/plain', text: 'abc' },
  ];
  expect(promptText(content)).toBe('look\n[a.png, image/png, 12,345 bytes]\n[b.md, text/plain, 3 bytes]');
  expect(promptText('plain')).toBe('plain');
});

test('an event without files has no lines', () => {
  expect(fileLines(undefined)).toEqual([]);
  expect(fileLines([{ name: 'a.png', media_type: 'image/png', bytes: 1 }])).toEqual(['[a.png, image/png, 1 bytes]']);
});
