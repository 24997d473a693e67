/** Marks the words that differ between a removed line and the added line that replaces it. */

import { diffWordsWithSpace } from 'diff';
import type { Part, Row } from './diff';

type Line = Row & { kind: 'added' | 'removed' };

/** Longer lines are not compared word by word. */
const LONGEST = 1_000;
/** The characters that are compared word by word in one diff: the rest has no marks, and the page stays responsive. */
const COMPARED = 100_000;
/** Runs of more lines are not paired: the work grows with the product of their lengths. */
const MOST_LINES = 60;
/** How alike two lines must be to count as one changed line: marks in lines that have little in common would be noise. */
const ALIKE = 0.4;

/** The rows with marked words. A run of removed lines and the run of added lines after it are compared line by line. */
export function markWords(rows: Row[]): Row[] {
  const marked = rows.slice();
  let left = COMPARED;
  for (let at = 0; at < rows.length;) {
    const removed = run(rows, at, 'removed');
    const added = run(rows, at + removed.length, 'added');
    left -= [...removed, ...added].reduce((sum, line) => sum + Math.min(LONGEST, textOf(line).length), 0);
    if (left < 0 && removed.length > 0) break;
    for (const [i, j] of pairs(removed, added)) {
      const [before, after] = changedWords(textOf(removed[i]!), textOf(added[j]!));
      marked[at + i] = { ...removed[i]!, parts: before };
      marked[at + removed.length + j] = { ...added[j]!, parts: after };
    }
    at += Math.max(1, removed.length + added.length);
  }
  return marked;
}

function run(rows: readonly Row[], from: number, kind: Line['kind']): Line[] {
  const lines: Line[] = [];
  for (let at = from; rows[at]?.kind === kind; at += 1) lines.push(rows[at] as Line);
  return lines;
}

/** The lines that replace each other, in order: the choice with the greatest likeness in total. */
function pairs(removed: readonly Line[], added: readonly Line[]): [number, number][] {
  if (removed.length === 0 || added.length === 0 || Math.max(removed.length, added.length) > MOST_LINES) return [];
  const left = removed.map((line) => words(textOf(line)));
  const right = added.map((line) => words(textOf(line)));
  // The best total for the lines from `i` and `j` on, from the end to the start.
  const best = Array.from({ length: left.length + 1 }, () => new Float64Array(right.length + 1));
  const alike = left.map((one) => right.map((other) => likeness(one, other)));
  for (let i = left.length - 1; i >= 0; i -= 1)
    for (let j = right.length - 1; j >= 0; j -= 1) {
      const both = alike[i]![j]! >= ALIKE ? alike[i]![j]! + best[i + 1]![j + 1]! : 0;
      best[i]![j] = Math.max(both, best[i + 1]![j]!, best[i]![j + 1]!);
    }
  const chosen: [number, number][] = [];
  for (let i = 0, j = 0; i < left.length && j < right.length;) {
    const both = alike[i]![j]! >= ALIKE ? alike[i]![j]! + best[i + 1]![j + 1]! : -1;
    if (both === best[i]![j]!) chosen.push([i++, j++]);
    else if (best[i + 1]![j]! >= best[i]![j + 1]!) i += 1;
    else j += 1;
  }
  return chosen;
}

function textOf(line: Line): string {
  return line.parts.map((part) => part.text).join('');
}

/** The words of a line and how often each occurs; null if the line is too long. */
function words(text: string): Map<string, number> | null {
  if (text.length > LONGEST) return null;
  const counts = new Map<string, number>();
  for (const word of text.match(/[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [])
    counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

/** The share of common words, from 0 to 1. */
function likeness(one: Map<string, number> | null, other: Map<string, number> | null): number {
  if (one === null || other === null) return 0;
  const sum = (counts: Map<string, number>) => [...counts.values()].reduce((total, count) => total + count, 0);
  const total = sum(one) + sum(other);
  let common = 0;
  for (const [word, count] of one) common += Math.min(count, other.get(word) ?? 0);
  return total === 0 ? 0 : (2 * common) / total;
}

function changedWords(before: string, after: string): [Part[], Part[]] {
  const changes = diffWordsWithSpace(before, after);
  const side = (own: 'removed' | 'added', other: 'removed' | 'added') =>
    changes.filter((change) => !change[other]).map((change) => ({ text: change.value, marked: change[own] }));
  return [side('removed', 'added'), side('added', 'removed')];
}
