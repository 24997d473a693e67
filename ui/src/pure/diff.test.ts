import { expect, test } from 'vitest';
import { countChanges, collapseUnchanged, hiddenCharacters, diffRows, patchRows, joinRows, type Row } from './diff';

const text = (row: Row) =>
  row.kind === 'gap'
    ? `~${row.text}`
    : `${{ same: ' ', added: '+', removed: '-' }[row.kind]}${row.parts.map((part) => (part.marked ? `[${part.text}]` : part.text)).join('')}`;

test('a changed line shows the words that changed', () => {
  expect(diffRows('one\nlet a = 1;\nthree\n', 'one\nlet b = 1;\nthree\n').map(text)).toEqual([
    ' one',
    '-let [a] = 1;',
    '+let [b] = 1;',
    ' three',
  ]);
});

test('lines are numbered on both sides', () => {
  const rows = diffRows('a\nb\n', 'a\nx\ny\nb\n');
  expect(rows.map((row) => row.kind !== 'gap' && [row.before, row.after])).toEqual([
    [1, 1],
    [null, 2],
    [null, 3],
    [2, 4],
  ]);
  expect(countChanges(rows)).toEqual({ added: 2, removed: 0 });
});

test('long unchanged runs are collapsed, and kept', () => {
  const same = Array.from({ length: 50 }, (_, i) => `line ${i}`).join('\n');
  const rows = collapseUnchanged(diffRows(`${same}\nold\n`, `${same}\nnew\n`));
  expect(rows.map(text)).toEqual(['~47 unchanged lines', ' line 47', ' line 48', ' line 49', '-old', '+new']);
  expect(rows[0]?.kind === 'gap' && rows[0].rows.length).toBe(47);
});

test('a whole text is added, and removed', () => {
  expect(diffRows('', 'a\nb').map(text)).toEqual(['+a', '+b']);
  expect(diffRows('a\n', '').map(text)).toEqual(['-a']);
});

test('a final newline does not change the line before it', () => {
  expect(diffRows('a\nb', 'a\nb\nc').map(text)).toEqual([' a', ' b', '+c']);
  expect(diffRows('a', 'a\n').map(text)).toEqual([' a', '+']);
});

test('a line of a megabyte is compared quickly', () => {
  const started = performance.now();
  const rows = diffRows('x'.repeat(1_000_000), 'y'.repeat(1_000_000));
  expect(rows.map((row) => row.kind)).toEqual(['removed', 'added']);
  expect(performance.now() - started).toBeLessThan(1_000);
});

test('a comparison that takes too long is given up', () => {
  const lines = (seed: number) => Array.from({ length: 15_000 }, (_, i) => `${(i * seed) % 9_973}`).join('\n');
  const started = performance.now();
  const rows = diffRows(lines(7), lines(11));
  expect(rows.length).toBeGreaterThan(15_000);
  expect(performance.now() - started).toBeLessThan(3_000);
});

test('a unified diff is parsed', () => {
  const patch =
    'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -3,2 +3,2 @@ fn main\n same\n-old\n+new\n\\ No newline at end of file\n';
  expect(patchRows(patch).map(text)).toEqual([
    '~@@ -3,2 +3,2 @@ fn main',
    ' same',
    '-old',
    '+new',
    '~\\ No newline at end of file',
  ]);
});

test('collapsed rows, rows beyond the limit and truncated lines count as hidden', () => {
  const same = Array.from({ length: 50 }, () => 'same').join('\n');
  const rows = collapseUnchanged(diffRows(`${same}\nold\n`, `${same}\n${'n'.repeat(30)}\n`));
  expect(hiddenCharacters(rows, 1_000, () => 1_000)).toBe(47 * 5);
  expect(hiddenCharacters(rows.slice(1), 4, () => 1_000)).toBe(31);
  expect(hiddenCharacters(rows.slice(1), 1_000, () => 10)).toBe(20);
  expect(hiddenCharacters(rows.slice(1), 1_000, () => 1_000)).toBe(0);
});

test('many rows become a few texts, and nothing is lost', () => {
  expect(joinRows(diffRows('a\nb\nc\n', 'a\nx\ny\nc\n'))).toEqual([
    { kind: 'same', text: '     1   a' },
    { kind: 'removed', text: '     2 − b' },
    { kind: 'added', text: '     2 + x\n     3 + y' },
    { kind: 'same', text: '     4   c' },
  ]);
});

test('a few unchanged lines at the beginning are not collapsed', () => {
  for (const above of ['a\n', 'a\nb\n', 'a\nb\nc\n']) {
    const rows = diffRows(`${above}old\n`, `${above}new 1\nnew 2\nnew 3\nnew 4\n`);
    expect(collapseUnchanged(rows)).toEqual(rows);
  }
});
