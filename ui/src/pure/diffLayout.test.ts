import { describe, expect, it } from 'vitest';
import { diffRows, type Row } from './diff';
import { lineText, lineTokens, pairRows, rowTokens, segments, versions } from './diffLayout';

const tokens = (text: string) =>
  text
    .split(/(\b)/)
    .filter(Boolean)
    .map((piece) => ({ text: piece, kind: null }));

describe('the drawing of a diff', () => {
  const rows = diffRows('let a = 1;\nkeep\nlet b = 2;\n', 'let a = 3;\nkeep\nmore\n');

  it('splits a line where a mark or a token begins', () => {
    const parts = [
      { text: 'let ab', marked: false },
      { text: 'cd', marked: true },
    ];
    const code = [
      { text: 'let', kind: 'keyword' as const },
      { text: ' abc', kind: null },
      { text: 'd', kind: 'name' as const },
    ];
    expect(segments(parts, code)).toEqual([
      { text: 'let', kind: 'keyword', marked: false },
      { text: ' ab', kind: null, marked: false },
      { text: 'c', kind: null, marked: true },
      { text: 'd', kind: 'name', marked: true },
    ]);
  });

  it('ignores the tokens of another text', () => {
    const parts = [{ text: 'abc', marked: true }];
    expect(segments(parts, [{ text: 'abd', kind: 'keyword' }])).toEqual([{ text: 'abc', kind: null, marked: true }]);
  });

  it('finds the tokens of each row in the version that the row belongs to', () => {
    const { before, after } = versions(rows);
    expect(before).toBe('let a = 1;\nkeep\nlet b = 2;');
    expect(after).toBe('let a = 3;\nkeep\nmore');
    const found = rowTokens(rows, lineTokens(tokens(before)), lineTokens(tokens(after)));
    for (const row of rows)
      if (row.kind !== 'gap')
        expect(
          found
            .get(row)!
            .map((token) => token.text)
            .join(''),
        ).toBe(lineText(row));
  });

  it('stays aligned behind a gap', () => {
    const gap: Row = { kind: 'gap', rows: [], text: '…' };
    const all = [rows[0]!, gap, ...rows.slice(1)];
    const { before, after } = versions(all);
    const found = rowTokens(all, lineTokens(tokens(before)), lineTokens(tokens(after)));
    for (const row of all)
      if (row.kind !== 'gap')
        expect(
          found
            .get(row)!
            .map((token) => token.text)
            .join(''),
        ).toBe(lineText(row));
  });

  it('places replaced lines beside each other', () => {
    const sides = pairRows(rows).map((pair) =>
      pair.kind === 'gap'
        ? 'gap'
        : [pair.left, pair.right].map((line) => (line === null ? '' : lineText(line))).join(' | '),
    );
    expect(sides).toEqual(['let a = 1; | let a = 3;', 'keep | keep', 'let b = 2; | more']);
  });
});
