/**
 * The input of a tool call in readable parts: commands, changes, new files, texts and fields. Nothing is left out: an unknown field, or a
 * field of an unexpected type, is shown as a plain field.
 */

import type { Fields, Json, TargetFile } from '../wire';
import type { Row } from './diff';
import { previewEdits, previewWrite, type Edit } from './editPreview';

export interface Option {
  label: string;
  description: string;
  preview: string;
}

export interface Question {
  text: string;
  header: string;
  several: boolean;
  options: Option[];
}

export type InputPart =
  | { kind: 'command'; text: string; description: string | null; notes: string[] }
  | { kind: 'path'; label: string; path: string }
  | { kind: 'change'; label: string; path: string | null; rows: Row[]; notes: string[] }
  | { kind: 'code'; label: string; text: string; path: string | null; language: string | null; notes?: string[] }
  | { kind: 'markdown'; label: string; text: string }
  | { kind: 'questions'; questions: Question[] }
  | { kind: 'field'; name: string; text: string }
  | { kind: 'json'; name: string; text: string };

/** The number of fields that are shown separately; the rest are shown as JSON. */
const MOST_FIELDS = 100;

/** Takes the known fields out of an input; the rest remain. */
class Taken {
  readonly left: Map<string, Json>;

  constructor(input: Fields) {
    this.left = new Map(Object.entries(input));
  }

  private take(name: string): void {
    this.left.delete(name);
  }

  text(name: string): string | null {
    const value = this.left.get(name);
    if (typeof value !== 'string') return null;
    this.take(name);
    return value;
  }

  flag(name: string): boolean {
    const value = this.left.get(name);
    if (typeof value !== 'boolean') return false;
    this.take(name);
    return value;
  }

  number(name: string): number | null {
    const value = this.left.get(name);
    if (typeof value !== 'number') return null;
    this.take(name);
    return value;
  }

  /** The value, if `read` accepts it. */
  read<T>(name: string, read: (value: Json) => T | null): T | null {
    const value = this.left.get(name);
    const known = value === undefined ? null : read(value);
    if (known !== null) this.take(name);
    return known;
  }
}

/** The parts of an input, compared with the current file if it is known. */
export function inputParts(tool: string, input: Fields, file: TargetFile | null = null): InputPart[] {
  const taken = new Taken(input);
  return [...known(tool, taken, file), ...fields(taken.left)];
}

function known(tool: string, taken: Taken, now: TargetFile | null): InputPart[] {
  switch (tool) {
    case 'Bash':
    case 'Monitor':
    case 'PowerShell':
      return command(taken);
    case 'Edit':
      return inFile(taken, (file) => change(taken, file, now));
    case 'MultiEdit':
      return inFile(taken, (file) => taken.read('edits', (value) => edits(value, file, now)) ?? []);
    case 'Write': {
      const file = taken.text('file_path');
      const content = taken.text('content');
      return [
        ...(file === null ? [] : [{ kind: 'path' as const, label: 'File', path: file }]),
        ...(content === null ? [] : [newContent(file, content, now)]),
      ];
    }
    case 'NotebookEdit': {
      const file = path(taken, 'notebook_path');
      const source = taken.text('new_source');
      const language = taken.left.get('cell_type') === 'markdown' ? 'markdown' : 'python';
      return [
        ...file,
        ...(source === null
          ? []
          : [{ kind: 'code' as const, label: 'New cell source', text: source, path: null, language }]),
      ];
    }
    case 'Read':
    case 'NotebookRead':
      return [...path(taken, 'file_path'), ...path(taken, 'notebook_path')];
    case 'ExitPlanMode': {
      const plan = taken.text('plan');
      return plan === null ? [] : [{ kind: 'markdown', label: 'Plan', text: plan }];
    }
    case 'AskUserQuestion': {
      const questions = taken.read('questions', questionsOf);
      return questions === null ? [] : [{ kind: 'questions', questions }];
    }
    case 'Task':
    case 'Agent': {
      const prompt = taken.text('prompt');
      return prompt === null ? [] : [{ kind: 'markdown', label: 'Prompt for the sub-agent', text: prompt }];
    }
    default:
      return [];
  }
}

function command(taken: Taken): InputPart[] {
  const text = taken.text('command');
  if (text === null) return [];
  const notes: string[] = [];
  const timeout = taken.number('timeout');
  if (timeout !== null) notes.push(`timeout ${timeout / 1000} s`);
  if (taken.flag('run_in_background')) notes.push('runs in the background');
  if (taken.flag('dangerouslyDisableSandbox')) notes.push('runs outside Claude Code’s own sandbox');
  return [{ kind: 'command', text, description: taken.text('description'), notes }];
}

function path(taken: Taken, name: string): InputPart[] {
  const text = taken.text(name);
  return text === null ? [] : [{ kind: 'path', label: name === 'notebook_path' ? 'Notebook' : 'File', path: text }];
}

/** The path of a file, and the changes in it. */
function inFile(taken: Taken, changes: (file: string | null) => InputPart[]): InputPart[] {
  const parts = path(taken, 'file_path');
  const file = parts[0]?.kind === 'path' ? parts[0].path : null;
  return [...parts, ...changes(file)];
}

/** The new content of a file: its difference from the current file, if that is known. */
function newContent(path: string | null, content: string, now: TargetFile | null): InputPart {
  const preview: ReturnType<typeof previewWrite> =
    now === null ? { rows: null, notes: [] } : previewWrite(now, content);
  const label = content === '' ? 'New content (empty)' : 'New content';
  if (preview.rows !== null) return { kind: 'change', label, path, rows: preview.rows, notes: preview.notes };
  return { kind: 'code', label, text: content, path, language: null, notes: preview.notes };
}

function change(taken: Taken, file: string | null, now: TargetFile | null): InputPart[] {
  if (typeof taken.left.get('old_string') !== 'string' || typeof taken.left.get('new_string') !== 'string') return [];
  const before = taken.text('old_string') ?? '';
  const after = taken.text('new_string') ?? '';
  return changes([{ before, after, everywhere: taken.flag('replace_all') }], file, now);
}

function changes(list: Edit[], path: string | null, now: TargetFile | null): InputPart[] {
  return previewEdits(now, list).map(({ rows, notes }, at) => ({
    kind: 'change',
    path,
    label: list.length === 1 ? 'Change' : `Change ${at + 1} of ${list.length}`,
    rows,
    notes: [...(list[at]?.everywhere ? ['replaces every occurrence'] : []), ...notes],
  }));
}

/** The changes of a MultiEdit; null if one of them has an unexpected field or type. */
function edits(value: Json, file: string | null, now: TargetFile | null): InputPart[] | null {
  if (!Array.isArray(value) || value.length > MOST_FIELDS) return null;
  const list: Edit[] = [];
  for (const one of value) {
    if (one === null || typeof one !== 'object' || Array.isArray(one)) return null;
    const { old_string: before, new_string: after, replace_all: everywhere = false, ...rest } = one;
    if (
      typeof before !== 'string' ||
      typeof after !== 'string' ||
      typeof everywhere !== 'boolean' ||
      Object.keys(rest).length > 0
    )
      return null;
    list.push({ before, after, everywhere });
  }
  return changes(list, file, now);
}

/** The questions of AskUserQuestion; null if one of them has an unexpected field or type. */
export function questionsOf(value: Json): Question[] | null {
  if (!Array.isArray(value) || value.length === 0 || value.length > 20) return null;
  const questions: Question[] = [];
  for (const one of value) {
    if (one === null || typeof one !== 'object' || Array.isArray(one)) return null;
    const { question: text, header = '', multiSelect: several = false, options = [], ...rest } = one;
    if (
      typeof text !== 'string' ||
      typeof header !== 'string' ||
      typeof several !== 'boolean' ||
      !Array.isArray(options) ||
      options.length > 50
    )
      return null;
    if (Object.keys(rest).length > 0) return null;
    const read: Option[] = [];
    for (const option of options) {
      if (option === null || typeof option !== 'object' || Array.isArray(option)) return null;
      const { label, description = '', preview = '', ...more } = option;
      if (
        typeof label !== 'string' ||
        typeof description !== 'string' ||
        typeof preview !== 'string' ||
        Object.keys(more).length > 0
      )
        return null;
      read.push({ label, description, preview });
    }
    questions.push({ text, header, several, options: read });
  }
  return questions;
}

function fields(left: Map<string, Json>): InputPart[] {
  const parts: InputPart[] = [];
  const rest: [string, Json][] = [];
  for (const [name, value] of left) {
    if (parts.length >= MOST_FIELDS) rest.push([name, value]);
    else if (value !== null && typeof value === 'object')
      parts.push({ kind: 'json', name, text: JSON.stringify(value, null, 2) });
    else parts.push({ kind: 'field', name, text: value === '' ? '""' : String(value) });
  }
  if (rest.length > 0)
    parts.push({
      kind: 'json',
      name: `${rest.length} more ${rest.length === 1 ? 'field' : 'fields'}`,
      text: JSON.stringify(Object.fromEntries(rest), null, 2),
    });
  return parts;
}

/** A call in one line, for lists. */
export function inputLine(tool: string, input: Fields): string {
  const text = (name: string) => (typeof input[name] === 'string' ? input[name] : null);
  const first =
    text('command') ??
    text('file_path') ??
    text('notebook_path') ??
    text('url') ??
    text('query') ??
    text('pattern') ??
    text('plan') ??
    (tool === 'AskUserQuestion' ? questionsOf(input['questions'] ?? null)?.[0]?.text : null) ??
    text('description') ??
    text('prompt');
  const line = first ?? (Object.keys(input).length === 0 ? '' : JSON.stringify(input));
  return line.slice(0, 400).replace(/\s+/g, ' ').trim();
}

/** The path relative to the working directory, if it is inside it. */
export function within(path: string, cwd: string | null): string {
  const base = cwd === null || cwd === '' ? null : cwd.replace(/\/+$/, '') + '/';
  return base !== null && base !== '/' && path.startsWith(base) && path.length > base.length && !path.includes('/../')
    ? path.slice(base.length)
    : path;
}
