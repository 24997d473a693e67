import { expect, test } from 'vitest';
import type { TargetFile } from '../wire';
import type { Row } from './diff';
import { previewEdits, previewWrite } from './editPreview';

const show = (rows: Row[] | null) =>
  rows?.map((row) =>
    row.kind === 'gap'
      ? `~${row.text}`
      : `${row.before ?? ''}:${row.after ?? ''}${{ same: ' ', added: '+', removed: '-' }[row.kind]}${row.parts.map((part) => part.text).join('')}`,
  );
const file = (text: string): TargetFile => ({ state: 'text', path: '/x', text });
const missing: TargetFile = { state: 'missing', path: '/x' };
const unavailable: TargetFile = { state: 'unavailable', path: '/x', reason: 'too large' };
const ten = Array.from({ length: 10 }, (_, at) => `line ${at + 1}`).join('\n') + '\n';
const one = (text: TargetFile | null, before: string, after: string, everywhere = false) =>
  previewEdits(text, [{ before, after, everywhere }])[0]!;

test('an edit has the line numbers and context of the file', () => {
  expect(show(one(file(ten), 'line 5\nline 6', 'line 5\nmore\nline six').rows)).toEqual([
    '2:2 line 2',
    '3:3 line 3',
    '4:4 line 4',
    '5:5 line 5',
    '6:-line 6',
    ':6+more',
    ':7+line six',
    '7:8 line 7',
    '8:9 line 8',
    '9:10 line 9',
  ]);
});

test('an edit within a line shows the line', () => {
  expect(show(one(file('let a = 1;\nlet b = 2;\n'), 'b = 2', 'b = 3').rows)).toEqual([
    '1:1 let a = 1;',
    '2:-let b = 2;',
    ':2+let b = 3;',
  ]);
});

test('an edit that ends with its line does not touch the next line', () => {
  expect(show(one(file('a\nb\nc\n'), 'b\n', '').rows)).toEqual(['1:1 a', '2:-b', '3:2 c']);
  expect(show(one(file('a\nb\nc'), 'c', 'd').rows)).toEqual(['1:1 a', '2:2 b', '3:-c', ':3+d']);
});

test('a replacement of all occurrences shows each with shifted line numbers', () => {
  const { rows, notes } = one(file('x\nx\n'), 'x', 'y\ny', true);
  expect(show(rows)).toEqual(['1:-x', ':1+y', ':2+y', '~…', '2:-x', ':3+y', ':4+y']);
  expect(notes).toEqual(['replaces 2 occurrences']);
});

test('an edit that does not match the file has a note and no numbers', () => {
  expect(one(file(ten), 'line 11', 'x')).toMatchObject({
    notes: ['the text to replace is not in the current file'],
  });
  expect(show(one(file(ten), 'line 11', 'x').rows)).toEqual([':-line 11', ':+x']);
  expect(one(file(ten), 'line', 'x').notes).toEqual(['the text to replace occurs 10 times in the current file']);
  expect(one(file(ten), '', 'x').notes).toEqual(['the file exists and is not empty']);
  expect(one(missing, 'a', 'x').notes).toEqual(['the file does not exist']);
  expect(one(missing, '', 'x').notes).toEqual(['creates a new file']);
  expect(one(unavailable, 'a', 'x').notes).toEqual(['cannot be compared with the current file: too large']);
  expect(one(null, 'a', 'b').notes).toEqual([]);
});

test('each edit applies to the result of the one before', () => {
  const [first, second] = previewEdits(file('a\nb\n'), [
    { before: 'a', after: 'x\ny', everywhere: false },
    { before: 'y', after: 'z', everywhere: false },
  ]);
  expect(show(first!.rows)).toEqual(['1:-a', ':1+x', ':2+y', '2:3 b']);
  expect(show(second!.rows)).toEqual(['1:1 x', '2:-y', ':2+z', '3:3 b']);
});

test('an overwritten file is compared', () => {
  expect(show(previewWrite(file('a\nb\n'), 'a\nc\n').rows)).toEqual(['1:1 a', '2:-b', ':2+c']);
  expect(previewWrite(file('a'), 'a').notes).toEqual(['no change: the file already has this content']);
  expect(previewWrite(missing, 'b')).toEqual({ rows: null, notes: ['creates a new file'] });
  expect(previewWrite(unavailable, 'b')).toEqual({
    rows: null,
    notes: ['cannot be compared with the current file: too large'],
  });
});

test('line ends are normalised as Claude Code does', () => {
  expect(one(file('a\r\nb\r\n'), 'a\nb', 'c').notes).toEqual([]);
});
