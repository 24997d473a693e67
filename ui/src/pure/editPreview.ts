/** Compares an edit with the current file: rows with the line numbers of the file, and notes. Without the file, the rows have no numbers. */

import type { TargetFile } from '../wire';
import { diffRows, type Row } from './diff';

export interface Edit {
  before: string;
  after: string;
  /** Replaces every occurrence. */
  everywhere: boolean;
}

export interface EditPreview {
  rows: Row[];
  notes: string[];
}

/** Lines of the file shown around a change. */
const AROUND = 3;
/** Occurrences shown of an edit that replaces all of them. */
const PLACES = 20;

/** The difference between a written file and the current one; no rows if there is nothing to compare with. */
export function previewWrite(file: TargetFile, content: string): { rows: Row[] | null; notes: string[] } {
  if (file.state !== 'text')
    return {
      rows: null,
      notes: [
        file.state === 'missing' ? 'creates a new file' : `cannot be compared with the current file: ${file.reason}`,
      ],
    };
  return {
    rows: diffRows(file.text, content),
    notes: [file.text === content ? 'no change: the file already has this content' : 'replaces the whole file'],
  };
}

/** Several edits, each applied to the result of the one before. */
export function previewEdits(file: TargetFile | null, edits: readonly Edit[]): EditPreview[] {
  if (file?.state !== 'text') return edits.map((edit) => unplaced(edit, absent(file, edit)));
  // Claude Code normalises line ends before it matches.
  let text = file.text.replaceAll('\r\n', '\n');
  return edits.map((edit) => {
    const against = placed(text, edit);
    if (edit.before !== '')
      text = edit.everywhere ? text.split(edit.before).join(edit.after) : replaceFirst(text, edit);
    return against;
  });
}

function absent(file: Exclude<TargetFile, { state: 'text' }> | null, edit: Edit): string[] {
  if (file?.state === 'unavailable') return [`cannot be compared with the current file: ${file.reason}`];
  if (edit.before === '') return ['creates a new file'];
  return file === null ? [] : ['the file does not exist'];
}

function placed(text: string, edit: Edit): EditPreview {
  if (edit.before === '') return unplaced(edit, text === '' ? [] : ['the file exists and is not empty']);
  const places = occurrences(text, edit.before);
  if (places.length === 0) return unplaced(edit, ['the text to replace is not in the current file']);
  if (places.length > 1 && !edit.everywhere)
    return unplaced(edit, [
      `the text to replace occurs ${places.length.toLocaleString('en')} times in the current file`,
    ]);
  const notes =
    edit.everywhere && places.length > 1 ? [`replaces ${places.length.toLocaleString('en')} occurrences`] : [];
  const rows: Row[] = [];
  let moved = 0;
  places.slice(0, PLACES).forEach((place, at) => {
    if (at > 0) rows.push({ kind: 'gap', rows: [], text: '…' });
    // With several occurrences, the lines around one may change as well.
    rows.push(...hunk(text, place, edit, moved, places.length === 1 ? AROUND : 0));
    moved += lines(edit.after) - lines(edit.before);
  });
  const more = places.length - PLACES;
  if (more > 0) {
    const occurrences = more === 1 ? 'occurrence' : 'occurrences';
    rows.push({ kind: 'gap', rows: [], text: `and ${more.toLocaleString('en')} more ${occurrences}` });
  }
  return { rows, notes };
}

/** One occurrence: whole lines, with some lines of the file around them. */
function hunk(text: string, place: number, { before, after }: Edit, moved: number, around: number): Row[] {
  const from = text.lastIndexOf('\n', place - 1) + 1;
  // A text with a final newline ends at the end of its line.
  const end = place + before.length;
  const until = before.endsWith('\n') ? end : text.indexOf('\n', end) + 1 || text.length;
  const first = lines(text.slice(0, from));
  const changed = diffRows(text.slice(from, until), text.slice(from, place) + after + text.slice(end, until));
  const number = (row: Row): Row =>
    row.kind === 'gap'
      ? row
      : {
          ...row,
          before: row.before === null ? null : row.before + first,
          after: row.after === null ? null : row.after + first + moved,
        };
  const above = split(text.slice(0, from)).slice(-around || Infinity);
  const below = split(text.slice(until)).slice(0, around);
  const old = first + split(text.slice(from, until)).length;
  const now = old + moved + lines(after) - lines(before);
  const context = (list: string[], oldFrom: number, nowFrom: number): Row[] =>
    list.map((line, at) => ({
      kind: 'same',
      before: oldFrom + at,
      after: nowFrom + at,
      parts: [{ text: line, marked: false }],
    }));
  return [
    ...context(above, first - above.length + 1, first - above.length + 1 + moved),
    ...changed.map(number),
    ...context(below, old + 1, now + 1),
  ];
}

/** Rows without line numbers, for an edit that has no position in the file. */
function unplaced({ before, after }: Edit, notes: string[]): EditPreview {
  return {
    rows: diffRows(before, after).map((row) => (row.kind === 'gap' ? row : { ...row, before: null, after: null })),
    notes,
  };
}

function occurrences(text: string, wanted: string): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) places.push(at);
  return places;
}

function replaceFirst(text: string, { before, after }: Edit): string {
  const at = text.indexOf(before);
  return at < 0 ? text : text.slice(0, at) + after + text.slice(at + before.length);
}

/** The number of newlines. */
function lines(text: string): number {
  return text.split('\n').length - 1;
}

function split(text: string): string[] {
  const all = text.split('\n');
  if (all.at(-1) === '') all.pop();
  return all;
}
