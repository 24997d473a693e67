/**
 * What a call does, in words and code: "Run `git push`", "Edit src/parser.ts, lines 41–48". The text is a headline: the view that allows
 * shows the whole input as well.
 */

import type { Approval, Fields, TargetFile } from '../wire';
import { BUDGET_UNITS } from './budgetUnits';
import type { Row } from './diff';
import { plain } from './fields';
import type { IconName } from './icons';
import { inputLine, inputParts, questionsOf, within } from './toolInput';

export interface Action {
  /** What kind of thing it is, for a list. */
  icon: IconName;
  /** A verb, or the name of a tool in words. */
  words: string;
  /** The command, path or address; '' if the words say it all. */
  code: string;
  /** What follows the code, such as the lines of a file. */
  detail: string;
}

/** A call as far as its headline needs it. */
export type Called = Pick<Approval, 'tool_name' | 'input'> & { kind?: Approval['kind']; cwd?: string | null };

/** Longer code is cut: the headline is one or two lines. */
const LONGEST = 200;

/** The headline of a call; with the file it changes, the headline names lines. */
export function actionOf(called: Called, file: TargetFile | null = null): Action {
  const { tool_name: tool, input, kind } = called;
  if (kind === 'budget') return { icon: 'budget', words: 'Grant a larger budget', code: '', detail: budgetUse(input) };
  const text = (name: string): string | null => (typeof input[name] === 'string' ? input[name] : null);
  const path = (name: string): string => within(text(name) ?? '', called.cwd ?? null);
  switch (tool) {
    case 'Bash':
    case 'PowerShell':
      return { icon: 'command', words: 'Run', ...firstLine(text('command') ?? '') };
    case 'Monitor':
      return { icon: 'command', words: 'Watch', ...firstLine(text('command') ?? '') };
    case 'Edit':
    case 'MultiEdit':
      return { icon: 'edit', words: 'Edit', code: short(path('file_path')), detail: changedLines(tool, input, file) };
    case 'NotebookEdit':
      return { icon: 'edit', words: 'Edit notebook', code: short(path('notebook_path')), detail: '' };
    case 'Write':
      return {
        icon: 'create',
        words: 'Write',
        code: short(path('file_path')),
        detail: [...replaces(file), size(text('content'))].filter((part) => part !== '').join(', '),
      };
    case 'Read':
    case 'NotebookRead':
      return {
        icon: 'file',
        words: 'Read',
        code: short(path(tool === 'Read' ? 'file_path' : 'notebook_path')),
        detail: '',
      };
    case 'Glob':
      return { icon: 'search', words: 'Find files', code: short(text('pattern') ?? ''), detail: place(path('path')) };
    case 'Grep':
      return { icon: 'search', words: 'Search for', code: short(text('pattern') ?? ''), detail: place(path('path')) };
    case 'LS':
      return { icon: 'search', words: 'List', code: short(path('path')), detail: '' };
    case 'WebFetch':
      return { icon: 'network', words: 'Fetch', code: short(text('url') ?? ''), detail: '' };
    case 'WebSearch':
      return { icon: 'network', words: 'Search the web for', code: short(text('query') ?? ''), detail: '' };
    case 'Task':
    case 'Agent':
      return { icon: 'agent', words: 'Start a sub-agent', code: '', detail: short(text('description') ?? '') };
    case 'Skill':
      return { icon: 'agent', words: 'Use skill', code: short(text('skill') ?? text('command') ?? ''), detail: '' };
    case 'ExitPlanMode':
      return { icon: 'plan', words: 'Plan', code: '', detail: planTitle(text('plan')) };
    case 'AskUserQuestion':
      return { icon: 'question', words: 'Question', code: '', detail: firstQuestion(input) };
    default:
      return {
        icon: tool.startsWith('mcp__') ? 'server' : 'tool',
        words: toolWords(tool),
        code: '',
        detail: short(tellingFields(input) || inputLine(tool, input)),
      };
  }
}

/** The name of a tool in words: the names that Claude Code gives its tools are its own. */
export function toolWords(tool: string): string {
  const mcp = /^mcp__(.+?)__(.+)$/.exec(tool);
  if (mcp) return short(`${mcp[1]}: ${mcp[2]!.replaceAll('_', ' ')}`);
  switch (tool) {
    case 'ExitPlanMode':
      return 'Plan';
    case 'AskUserQuestion':
      return 'Question';
    case 'Task':
    case 'Agent':
      return 'Sub-agent';
    case 'TodoWrite':
      return 'To-do list';
    case 'WebFetch':
      return 'Web page';
    case 'WebSearch':
      return 'Web search';
    default:
      return short(tool);
  }
}

/** The headline as one text. */
export function actionText({ words, code, detail }: Action): string {
  const rest = detail === '' ? '' : code === '' ? `: ${detail}` : `, ${detail}`;
  return `${words}${code === '' ? '' : ` ${code}`}${rest}`;
}

function short(text: string): string {
  const line = text
    .slice(0, 4 * LONGEST)
    .replace(/\s+/g, ' ')
    .trim();
  return line.length <= LONGEST && text.length <= 4 * LONGEST ? line : `${line.slice(0, LONGEST).trimEnd()}…`;
}

/** The first line of a command, and how many follow. */
function firstLine(command: string): Pick<Action, 'code' | 'detail'> {
  const lines = command.trim().split('\n');
  const more = lines.filter((line, at) => at > 0 && line.trim() !== '').length;
  const detail = more === 0 ? '' : `+${more.toLocaleString('en')} ${more === 1 ? 'line' : 'lines'}`;
  return { code: short(lines[0] ?? ''), detail };
}

/** The names of fields that say most about a call of an unknown tool, best first. */
const TELLING = ['title', 'name', 'path', 'file', 'url', 'query', 'command', 'id', 'subject', 'to', 'text', 'message'];
const FIELDS_SHOWN = 2;

/** The fields of an input that say most, as texts; '' if it has none. */
function tellingFields(input: Fields): string {
  // A description alone needs no name: it is a text about the call, such as the hub's summary.
  if (Object.keys(input).length === 1 && typeof input['description'] === 'string') return input['description'];
  const rank = (name: string) => {
    const at = TELLING.findIndex((one) => name.toLowerCase() === one || name.toLowerCase().endsWith(`_${one}`));
    return at < 0 ? TELLING.length : at;
  };
  const plain = Object.entries(input).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value));
  return plain
    .toSorted(([a], [b]) => rank(a) - rank(b))
    .slice(0, FIELDS_SHOWN)
    .map(([name, value]) => `${name.slice(0, 60)} ${JSON.stringify(typeof value === 'string' ? short(value) : value)}`)
    .join(', ');
}

function place(path: string): string {
  return path === '' ? '' : `in ${short(path)}`;
}

/** Whether a written file is new. The verb stays the same as in a list, which does not know the file. */
function replaces(file: TargetFile | null): string[] {
  if (file?.state === 'missing') return ['new file'];
  return file?.state === 'text' ? ['replaces the file'] : [];
}

function size(content: string | null): string {
  if (content === null) return '';
  const lines = content === '' ? 0 : content.split('\n').length - (content.endsWith('\n') ? 1 : 0);
  return `${lines.toLocaleString('en')} ${lines === 1 ? 'line' : 'lines'}`;
}

/** The lines of the file that an edit changes, in the numbers of the current file. */
function changedLines(tool: string, input: Fields, file: TargetFile | null): string {
  if (file?.state !== 'text') return '';
  const numbers: number[] = [];
  for (const part of inputParts(tool, input, file)) if (part.kind === 'change') numbers.push(...lineNumbers(part.rows));
  if (numbers.length === 0) return '';
  const [first, last] = [numbers.reduce((a, b) => Math.min(a, b)), numbers.reduce((a, b) => Math.max(a, b))];
  return first === last ? `line ${first}` : `lines ${first}–${last}`;
}

/** The lines that rows remove; a pure insertion counts as the line before it. */
function lineNumbers(rows: readonly Row[]): number[] {
  const numbers: number[] = [];
  const inserts = !rows.some((row) => row.kind === 'removed');
  let before = 0;
  for (const row of rows) {
    if (row.kind === 'gap') continue;
    if (row.kind === 'removed' && row.before !== null) numbers.push(row.before);
    if (row.kind === 'added' && row.after !== null && inserts) numbers.push(Math.max(1, before));
    if (row.kind !== 'added' && row.before !== null) before = row.before;
  }
  return numbers;
}

/** How much of a budget is used, such as "1 of 1 tool calls used". */
function budgetUse(input: Fields): string {
  const limit = plain(input['limit']);
  if (limit === '') return '';
  return short(`${plain(input['used'])} of ${plain(input['granted'])} ${BUDGET_UNITS[limit] ?? limit} used`);
}

/** The first line of a plan that says more than that it is one. */
function planTitle(plan: string | null): string {
  const lines = (plan ?? '').slice(0, 20 * LONGEST).split('\n');
  const titles = lines.map((line) =>
    line
      .replace(/^[#>*\s-]*/, '')
      .replace(/^plan\b\s*[:–-]?\s*/i, '')
      .trim(),
  );
  return short(titles.find((one) => one !== '') ?? '');
}

function firstQuestion(input: Fields): string {
  const questions = questionsOf(input['questions'] ?? null);
  const more = (questions?.length ?? 0) - 1;
  return short(questions?.[0]?.text ?? '') + (more > 0 ? ` (and ${more} more)` : '');
}
