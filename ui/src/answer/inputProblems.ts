/**
 * Checks whether an edited input is valid for its tool: against the known inputs of Claude Code's tools, and for other tools against the
 * agent's input. An error blocks the answer; a doubt is only shown.
 */

import type { Fields, Json } from '../wire';

export interface InputProblem {
  field: string;
  what: string;
  /** Whether the tool would certainly reject the input. */
  certain: boolean;
}

type Type = 'text' | 'number' | 'yes or no' | 'list' | 'object' | readonly string[];
/** A name with `?` is optional. */
type Shape = Record<string, Type | { each: Shape }>;

const EDIT = { old_string: 'text', new_string: 'text', 'replace_all?': 'yes or no' } as const;

const SHAPES: Record<string, Shape> = {
  Bash: {
    command: 'text',
    'description?': 'text',
    'timeout?': 'number',
    'run_in_background?': 'yes or no',
    'dangerouslyDisableSandbox?': 'yes or no',
  },
  BashOutput: { bash_id: 'text', 'filter?': 'text' },
  KillShell: { shell_id: 'text' },
  Edit: { file_path: 'text', ...EDIT },
  MultiEdit: { file_path: 'text', edits: { each: EDIT } },
  Write: { file_path: 'text', content: 'text' },
  Read: { file_path: 'text', 'offset?': 'number', 'limit?': 'number', 'pages?': 'text' },
  NotebookEdit: {
    notebook_path: 'text',
    new_source: 'text',
    'cell_id?': 'text',
    'cell_type?': ['code', 'markdown'],
    'edit_mode?': ['replace', 'insert', 'delete'],
  },
  WebFetch: { url: 'text', prompt: 'text' },
  WebSearch: { query: 'text', 'allowed_domains?': 'list', 'blocked_domains?': 'list' },
  Glob: { pattern: 'text', 'path?': 'text' },
  Grep: {
    pattern: 'text',
    'path?': 'text',
    'glob?': 'text',
    'type?': 'text',
    'output_mode?': ['content', 'files_with_matches', 'count'],
    '-A?': 'number',
    '-B?': 'number',
    '-C?': 'number',
    'context?': 'number',
    '-n?': 'yes or no',
    '-i?': 'yes or no',
    '-o?': 'yes or no',
    'head_limit?': 'number',
    'offset?': 'number',
    'multiline?': 'yes or no',
  },
  LS: { path: 'text', 'ignore?': 'list' },
  Task: {
    description: 'text',
    prompt: 'text',
    'subagent_type?': 'text',
    'model?': 'text',
    'run_in_background?': 'yes or no',
    'name?': 'text',
    'isolation?': 'text',
  },
  Skill: { skill: 'text', 'args?': 'text' },
  TodoWrite: { todos: 'list' },
  ExitPlanMode: { 'plan?': 'text', 'planFilePath?': 'text', 'allowedPrompts?': 'list' },
  AskUserQuestion: { questions: 'list', 'answers?': 'object', 'annotations?': 'object' },
};
SHAPES['Agent'] = SHAPES['Task']!;

/** The problems of an edited input. */
export function inputProblems(tool: string, input: Fields, original: Fields): InputProblem[] {
  const shape = Object.hasOwn(SHAPES, tool) ? SHAPES[tool]! : null;
  return shape === null ? differences(input, original) : shapeProblems(shape, input, original, '');
}

function shapeProblems(shape: Shape, input: Fields, original: Fields | null, within: string): InputProblem[] {
  const found: InputProblem[] = [];
  const names = new Map(
    Object.entries(shape).map(([name, type]) => [name.replace(/\?$/, ''), { type, needed: !name.endsWith('?') }]),
  );
  for (const [name, { type, needed }] of names) {
    const field = within + name;
    const value = input[name];
    if (value === undefined) {
      if (needed) found.push({ field, what: 'is missing', certain: true });
    } else if (typeof type === 'object' && 'each' in type) {
      if (!Array.isArray(value)) found.push({ field, what: `must be a list, not ${named(value)}`, certain: true });
      else
        value.forEach((one, at) => {
          if (one === null || typeof one !== 'object' || Array.isArray(one))
            found.push({ field: `${field}[${at}]`, what: `must be an object, not ${named(one)}`, certain: true });
          else found.push(...shapeProblems(type.each, one, null, `${field}[${at}].`));
        });
    } else if (!fits(value, type)) {
      found.push({
        field,
        what:
          typeof type === 'string'
            ? `must be ${article(type)}, not ${named(value)}`
            : `must be one of ${type.join(', ')}`,
        certain: true,
      });
    }
  }
  for (const name of Object.keys(input)) {
    // A newer Claude Code may have more fields: those that the agent set itself are valid.
    if (!names.has(name) && !(original && Object.hasOwn(original, name)))
      found.push({ field: within + name, what: 'is not a field of this tool', certain: true });
  }
  return found;
}

function differences(input: Fields, original: Fields): InputProblem[] {
  const found: InputProblem[] = [];
  for (const [name, was] of Object.entries(original)) {
    const value = input[name];
    if (value === undefined) found.push({ field: name, what: 'is missing, but the agent set it', certain: false });
    else if (was !== null && typeOf(value) !== typeOf(was))
      found.push({ field: name, what: `must be ${article(typeOf(was))}, not ${named(value)}`, certain: true });
  }
  for (const name of Object.keys(input)) {
    if (!Object.hasOwn(original, name))
      found.push({
        field: name,
        what: 'was not set by the agent, and the tool may not accept it',
        certain: false,
      });
  }
  return found;
}

function fits(value: Json, type: Type): boolean {
  return typeof type === 'string' ? typeOf(value) === type : typeof value === 'string' && type.includes(value);
}

function typeOf(value: Json): string {
  if (value === null) return 'nothing';
  if (Array.isArray(value)) return 'list';
  return { string: 'text', number: 'number', boolean: 'yes or no', object: 'object' }[
    typeof value as 'string' | 'number' | 'boolean' | 'object'
  ];
}

const named = (value: Json) => article(typeOf(value));
const article = (type: string) =>
  type === 'nothing' || type === 'yes or no'
    ? type === 'nothing'
      ? 'nothing'
      : 'true or false'
    : `${type === 'object' ? 'an' : 'a'} ${type}`;

/** Parses JSON that must be an object. */
export function parseInput(text: string): { input: Fields } | { fault: string } {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) };
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    return { fault: 'must be a JSON object: {…}' };
  return { input: value };
}
