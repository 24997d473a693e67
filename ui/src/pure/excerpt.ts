/** Excerpts of long texts: beginning and end, so that nothing can hide behind a long middle, and the size of the omitted part. */

import { truncate } from './text';

export interface Excerpt {
  head: string;
  /** The number of omitted characters and lines between head and tail. */
  left: number;
  leftLines: number;
  tail: string;
}

/** The size of the tail. */
const TAIL = 400;
const TAIL_LINES = 4;

/** The text within a number of characters and lines. */
export function excerpt(text: string, most: number, lines: number): Excerpt {
  let end = Math.min(text.length, most);
  // The end of the last line of the head, found without splitting a text that may be huge.
  for (let at = -1, seen = 0; ;) {
    at = text.indexOf('\n', at + 1);
    if (at < 0 || at >= end) break;
    seen += 1;
    if (seen >= lines) {
      end = at;
      break;
    }
  }
  if (end >= text.length) return { head: text, left: 0, leftLines: 0, tail: '' };
  const head = truncate(text, end).text;
  const from = Math.max(head.length, tailFrom(text));
  const left = from - head.length;
  if (left <= TAIL) return { head: text, left: 0, leftLines: 0, tail: '' };
  let leftLines = 0;
  for (let at = text.indexOf('\n', head.length); at >= 0 && at < from; at = text.indexOf('\n', at + 1)) leftLines += 1;
  return { head, left, leftLines, tail: text.slice(from) };
}

/** The beginning of a text, within a number of characters and lines. It ends with a whole word if there is one. */
export function beginning(text: string, most: number, lines: number): string {
  const first = text.split('\n', lines).join('\n');
  if (first.length <= most) return first;
  const head = truncate(first, most).text;
  const space = head.lastIndexOf(' ');
  return space > most / 2 ? head.slice(0, space) : head;
}

function tailFrom(text: string): number {
  const earliest = Math.max(0, text.length - TAIL);
  let from = text.length;
  for (let seen = 0; seen < TAIL_LINES && from > earliest; seen += 1) {
    const at = text.lastIndexOf('\n', from - 1);
    if (at < earliest) {
      from = earliest;
      break;
    }
    from = at;
  }
  // Not within a surrogate pair.
  return /[\udc00-\udfff]/.test(text[from] ?? '') ? from + 1 : from;
}

/** The size of the omitted part. */
export function omittedText({ left, leftLines }: Pick<Excerpt, 'left' | 'leftLines'>): string {
  const characters = `${left.toLocaleString('en')} more ${left === 1 ? 'character' : 'characters'}`;
  return leftLines > 1 ? `${characters} in ${leftLines.toLocaleString('en')} lines` : characters;
}
