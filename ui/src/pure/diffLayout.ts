/** How the rows of a diff are drawn: coloured segments of each line, and the pairs of lines for two columns. */

import type { Part, Row } from './diff';
import type { Token, TokenKind } from './syntax';

/** A piece of a line with one look. */
export interface Segment {
  text: string;
  kind: TokenKind | null;
  marked: boolean;
}

export type Line = Exclude<Row, { kind: 'gap' }>;

/** A row of two columns: the old line on the left, the new one on the right. */
export type Pair =
  { kind: 'gap'; gap: Row & { kind: 'gap' } } | { kind: 'lines'; left: Line | null; right: Line | null };

/** The two versions that rows show, as texts to highlight. A gap interrupts both. */
export function versions(rows: readonly Row[]): { before: string; after: string } {
  const side = (other: 'added' | 'removed') =>
    rows.flatMap((row) => (row.kind === other ? [] : [row.kind === 'gap' ? '' : lineText(row)])).join('\n');
  return { before: side('added'), after: side('removed') };
}

/** The tokens of each line of a highlighted version. */
export function lineTokens(tokens: readonly Token[]): Token[][] {
  const lines: Token[][] = [[]];
  for (const { text, kind } of tokens)
    text.split('\n').forEach((piece, at) => {
      if (at > 0) lines.push([]);
      if (piece !== '') lines.at(-1)!.push({ text: piece, kind });
    });
  return lines;
}

/** The tokens of each row, from both highlighted versions: a removed row is part of the old one, others of the new one. */
export function rowTokens(rows: readonly Row[], before: Token[][], after: Token[][]): Map<Row, Token[]> {
  const found = new Map<Row, Token[]>();
  let [old, now] = [0, 0];
  for (const row of rows) {
    const tokens = row.kind === 'removed' ? before[old] : after[now];
    if (row.kind !== 'gap' && tokens) found.set(row, tokens);
    if (row.kind !== 'added') old += 1;
    if (row.kind !== 'removed') now += 1;
  }
  return found;
}

/** The pieces of a line: split where a word mark or a token begins or ends. Tokens of another text are ignored. */
export function segments(parts: readonly Part[], tokens: readonly Token[] | undefined): Segment[] {
  const text = parts.map((part) => part.text).join('');
  if (tokens === undefined || tokens.map((token) => token.text).join('') !== text)
    return parts.map((part) => ({ ...part, kind: null }));
  const all: Segment[] = [];
  let [part, inPart, inToken] = [0, 0, 0];
  for (let token = 0; token < tokens.length && part < parts.length;) {
    const { text: code, kind } = tokens[token]!;
    const { text: piece, marked } = parts[part]!;
    const length = Math.min(code.length - inToken, piece.length - inPart);
    if (length > 0) all.push({ text: code.slice(inToken, inToken + length), kind, marked });
    inToken += length;
    inPart += length;
    if (inToken === code.length) [token, inToken] = [token + 1, 0];
    if (inPart === piece.length) [part, inPart] = [part + 1, 0];
  }
  return all;
}

/** The rows in two columns. Removed lines stand beside the added lines that replace them. */
export function pairRows(rows: readonly Row[]): Pair[] {
  const pairs: Pair[] = [];
  for (let at = 0; at < rows.length;) {
    const row = rows[at]!;
    if (row.kind === 'gap') pairs.push({ kind: 'gap', gap: row });
    if (row.kind === 'same') pairs.push({ kind: 'lines', left: row, right: row });
    if (row.kind === 'gap' || row.kind === 'same') {
      at += 1;
      continue;
    }
    const left: Line[] = [];
    const right: Line[] = [];
    for (let next = rows[at]; next?.kind === 'removed'; next = rows[(at += 1)]) left.push(next);
    for (let next = rows[at]; next?.kind === 'added'; next = rows[(at += 1)]) right.push(next);
    for (let i = 0; i < Math.max(left.length, right.length); i += 1)
      pairs.push({ kind: 'lines', left: left[i] ?? null, right: right[i] ?? null });
  }
  return pairs;
}

export function lineText(row: Line): string {
  return row.parts.map((part) => part.text).join('');
}
