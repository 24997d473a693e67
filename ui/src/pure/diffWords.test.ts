import { describe, expect, it } from 'vitest';
import { diffRows, patchRows, type Row } from './diff';

const marked = (rows: Row[]) =>
  rows.flatMap((row) =>
    row.kind === 'gap' ? [] : row.parts.filter((part) => part.marked).map((part) => `${row.kind}: ${part.text}`),
  );

describe('changed words', () => {
  it('are marked in a line that replaces another', () => {
    expect(marked(diffRows('let total = 1;\n', 'let sum = 1;\n'))).toEqual(['removed: total', 'added: sum']);
  });

  it('are marked between runs of different lengths', () => {
    const before = 'first thing here\nlet total = price * count;\nlast thing here\n';
    const after = 'let total = price * amount;\n';
    expect(marked(diffRows(before, after))).toEqual(['removed: count', 'added: amount']);
  });

  it('are not marked in lines that have little in common', () => {
    expect(marked(diffRows('one two three\n', 'completely different text\n'))).toEqual([]);
  });

  it('are marked in a unified diff', () => {
    expect(marked(patchRows('@@ -1 +1 @@\n-a red box\n+a blue box\n'))).toEqual(['removed: red', 'added: blue']);
  });

  it('keep the text of every line', () => {
    const before = Array.from({ length: 80 }, (_, i) => `line ${i} of the text`);
    const after = before.map((line, i) => (i % 3 === 0 ? `${line}!` : line)).filter((_, i) => i % 7 !== 0);
    const rows = diffRows(before.join('\n'), after.join('\n'));
    const side = (kinds: string[]) =>
      rows.flatMap((row) =>
        row.kind !== 'gap' && kinds.includes(row.kind) ? [row.parts.map((part) => part.text).join('')] : [],
      );
    expect(side(['same', 'removed'])).toEqual(before);
    expect(side(['same', 'added'])).toEqual(after);
  });
});
