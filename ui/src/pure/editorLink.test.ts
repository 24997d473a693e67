import { expect, test } from 'vitest';
import { editorLink } from './editorLink';

test('a file opens in the chosen editor, at its line', () => {
  expect(editorLink('vscode', '/home/ada/a b.ts', 7)).toBe('vscode://file/home/ada/a%20b.ts:7');
  expect(editorLink('cursor', '/x')).toBe('cursor://file/x');
  expect(editorLink('none', '/x')).toBeNull();
  expect(editorLink('vscode', 'relative')).toBeNull();
});

test('a path cannot change the meaning of the address', () => {
  expect(editorLink('vscode', '/a?b#c:5&d')).toBe('vscode://file/a%3Fb%23c%3A5%26d');
  expect(editorLink('vscode', '/a\ud800')).toBeNull();
});
