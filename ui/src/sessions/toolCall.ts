/** A tool call in one line, and its result as text. */

import { imageBlock, type ImageBlock } from '../pure/image';
import type { Fields, Json } from '../wire';
import type { Call } from './timeline';

/** The fields that describe an input best, in this order. */
const TELLING = [
  'command',
  'file_path',
  'notebook_path',
  'path',
  'pattern',
  'url',
  'query',
  'description',
  'prompt',
  'plan',
  'name',
  'skill',
];
const LONGEST = 200;

/** The most descriptive part of an input, in one line. */
export function inputSummary(input: Fields): string {
  const found =
    TELLING.map((name) => input[name]).find((value) => typeof value === 'string' && value !== '') ??
    Object.values(input).find((value) => typeof value === 'string' && value !== '');
  if (typeof found === 'string') return oneLine(found);
  const names = Object.keys(input);
  return names.length === 0 ? '' : oneLine(names.slice(0, 8).join(', '));
}

export function oneLine(text: string, most = LONGEST): string {
  // Truncated first, because the text may be a megabyte long.
  const begin = text
    .slice(0, most * 4)
    .replace(/\s+/g, ' ')
    .trim();
  return begin.length > most || text.length > most * 4 ? `${begin.slice(0, most)}…` : begin;
}

/** A result as text. It is a text, or Claude Code's content blocks. */
export function resultText(value: Json): string {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return JSON.stringify(value, null, 2);
  return value
    .map((block) => {
      if (block === null || typeof block !== 'object' || Array.isArray(block)) return JSON.stringify(block);
      if (typeof block['text'] === 'string') return block['text'];
      return `[${typeof block['type'] === 'string' ? block['type'] : 'not text'}]`;
    })
    .join('\n');
}

export type ResultPart = { kind: 'text'; text: string } | { kind: 'image'; image: ImageBlock };

/** A result in the order of its blocks: texts, and images between them. */
export function resultParts(value: Json): ResultPart[] {
  if (!Array.isArray(value)) return [{ kind: 'text', text: resultText(value) }];
  const parts: ResultPart[] = [];
  for (const block of value) {
    const image = imageBlock(block);
    const last = parts.at(-1);
    if (image !== null) parts.push({ kind: 'image', image });
    else if (last?.kind === 'text') last.text += `\n${resultText([block])}`;
    else parts.push({ kind: 'text', text: resultText([block]) });
  }
  return parts;
}

/** The state of a call. */
export function callState(
  call: Call,
  turnOver: boolean,
): 'waits' | 'denied' | 'failed' | 'done' | 'runs' | 'unfinished' {
  if (call.decided && call.decided.status !== 'allowed') return 'denied';
  if (call.result) return call.result.error ? 'failed' : 'done';
  if (turnOver) return 'unfinished';
  return call.approval !== null && call.decided === null ? 'waits' : 'runs';
}
