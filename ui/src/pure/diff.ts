/** Diffs as rows, from two texts or from a unified diff. Texts that are too large to compare are shown as removed and added. */

import { diffArrays } from 'diff';
import { markWords } from './diffWords';

export interface Part {
  text: string;
  /** Whether this part differs within the line. */
  marked: boolean;
}

export type Row =
  | { kind: 'same' | 'added' | 'removed'; before: number | null; after: number | null; parts: Part[] }
  /** Unchanged lines that are hidden or, in a unified diff, missing. */
  | { kind: 'gap'; rows: Row[]; text: string };

/** Longer texts are not compared, in characters. */
const COMPARED = 400_000;
/** The time limit of a comparison, in milliseconds. */
const PATIENCE = 150;
/** Unchanged lines shown around a change. */
const AROUND = 3;

/** The rows between two texts. */
export function diffRows(before: string, after: string): Row[] {
  const small = before.length + after.length <= COMPARED;
  const [from, to] = bothLines(before, after);
  const changes = small ? diffArrays(from, to, { timeout: PATIENCE }) : undefined;
  const parts = changes ?? [
    { value: from, removed: true, added: false },
    { value: to, removed: false, added: true },
  ];
  const rows: Row[] = [];
  let old = 1;
  let now = 1;
  for (const { value, removed, added } of parts)
    for (const line of value) {
      if (removed) rows.push({ kind: 'removed', before: old++, after: null, parts: plain(line) });
      else if (added) rows.push({ kind: 'added', before: null, after: now++, parts: plain(line) });
      else rows.push({ kind: 'same', before: old++, after: now++, parts: plain(line) });
    }
  return markWords(rows);
}

/** The rows of a unified diff, without the lines before the first hunk. */
export function patchRows(patch: string): Row[] {
  const rows: Row[] = [];
  let old = 0;
  let now = 0;
  let within = false;
  for (const line of linesOf(patch)) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(line);
    if (hunk) {
      old = Number(hunk[1]);
      now = Number(hunk[2]);
      within = true;
      rows.push({ kind: 'gap', rows: [], text: line });
    } else if (within) {
      const parts = plain(line.slice(1));
      if (line.startsWith('+')) rows.push({ kind: 'added', before: null, after: now++, parts });
      else if (line.startsWith('-')) rows.push({ kind: 'removed', before: old++, after: null, parts });
      else if (line.startsWith(' ')) rows.push({ kind: 'same', before: old++, after: now++, parts });
      else rows.push({ kind: 'gap', rows: [], text: line });
    }
  }
  return markWords(rows);
}

/** The rows with long unchanged runs collapsed. */
export function collapseUnchanged(rows: Row[]): Row[] {
  const shown: Row[] = [];
  for (let at = 0; at < rows.length;) {
    let end = at;
    while (rows[end]?.kind === 'same') end += 1;
    if (end === at) {
      shown.push(rows[at]!);
      at += 1;
      continue;
    }
    const first = at === 0 ? 0 : AROUND;
    const last = end === rows.length ? 0 : AROUND;
    // A short run hides nothing. A negative index would count from the end.
    const hidden = rows.slice(at + first, Math.max(at + first, end - last));
    if (hidden.length > 2) {
      shown.push(...rows.slice(at, at + first));
      shown.push({ kind: 'gap', rows: hidden, text: `${hidden.length.toLocaleString('en')} unchanged lines` });
      shown.push(...rows.slice(end - last, end));
    } else {
      shown.push(...rows.slice(at, end));
    }
    at = end;
  }
  return shown;
}

/** Consecutive rows of the same kind as one text with numbers and signs, so that a large diff needs few elements. */
export function joinRows(rows: Row[]): { kind: Row['kind']; text: string }[] {
  const all: { kind: Row['kind']; lines: string[] }[] = [];
  for (const row of rows) {
    const line =
      row.kind === 'gap'
        ? row.text
        : `${String(row.after ?? row.before ?? '').padStart(6)} ${{ same: ' ', added: '+', removed: '−' }[row.kind]} ${row.parts.map((part) => part.text).join('')}`;
    const last = all.at(-1);
    if (last?.kind === row.kind) last.lines.push(line);
    else all.push({ kind: row.kind, lines: [line] });
  }
  return all.map(({ kind, lines }) => ({ kind, text: lines.join('\n') }));
}

/** The number of hidden characters if `most` rows are shown, and `line(row)` characters of each. */
export function hiddenCharacters(rows: Row[], most: number, line: (row: Row) => number): number {
  let left = 0;
  rows.forEach((row, at) => {
    if (row.kind === 'gap') left += row.rows.reduce((sum, hidden) => sum + lengthOf(hidden) + 1, 0);
    else if (at >= most) left += lengthOf(row) + 1;
    else for (const part of row.parts) left += Math.max(0, part.text.length - line(row));
  });
  return left;
}

function lengthOf(row: Row): number {
  return row.kind === 'gap'
    ? row.rows.reduce((sum, one) => sum + lengthOf(one), 0)
    : row.parts.reduce((sum, part) => sum + part.text.length, 0);
}

/** The number of added and removed lines. */
export function countChanges(rows: Row[]): { added: number; removed: number } {
  const of = (kind: Row['kind']) => rows.reduce((sum, row) => sum + (row.kind === kind ? 1 : 0), 0);
  return { added: of('added'), removed: of('removed') };
}

function plain(text: string): Part[] {
  return [{ text, marked: false }];
}

/** The lines of both texts. A final newline is not a line, unless only one of the texts has it. */
function bothLines(before: string, after: string): [string[], string[]] {
  const alike = before === '' || after === '' || before.endsWith('\n') === after.endsWith('\n');
  const lines = (text: string) => (alike ? linesOf(text) : text.split('\n'));
  return [lines(before), lines(after)];
}

function linesOf(text: string): string[] {
  if (text === '') return [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}
