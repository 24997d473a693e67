/** Suggests rules for an approval: Claude Code's suggestions, a rule for exactly this call, and rules for similar calls. */

import type { Approval, Json } from '../wire';

export interface Offered {
  /** Claude Code's suggestion or a rule for exactly this call; empty if the person should write one. */
  first: string;
  /** Further suggestions, some of them wider. They are never filled in without a click. */
  others: string[];
}

export function rulesFor(approval: Pick<Approval, 'tool_name' | 'input' | 'suggestions'>): Offered {
  const { exact, wider } = suggestionsFor(approval.tool_name, approval.input);
  const narrow = [...claudeSuggestions(approval.tool_name, approval.suggestions ?? []), ...exact];
  const first = narrow[0] ?? '';
  return { first, others: [...new Set([...narrow, ...wider])].filter((rule) => rule !== first).slice(0, 5) };
}

function claudeSuggestions(tool: string, suggestions: readonly Json[]): string[] {
  const rules: string[] = [];
  for (const one of suggestions) {
    if (one === null || typeof one !== 'object' || Array.isArray(one)) continue;
    if (one['type'] !== 'addRules' || one['behavior'] !== 'allow' || !Array.isArray(one['rules'])) continue;
    for (const rule of one['rules']) {
      if (rule === null || typeof rule !== 'object' || Array.isArray(rule) || typeof rule['toolName'] !== 'string')
        continue;
      // Claude Code suggests rules for Bash for other tools that run commands; they would not match this call.
      if (rule['toolName'] === 'Bash' && tool !== 'Bash') continue;
      rules.push(
        typeof rule['ruleContent'] === 'string' ? `${rule['toolName']}(${rule['ruleContent']})` : rule['toolName'],
      );
    }
  }
  return rules.filter((rule) => rule.length <= 1_000);
}

/** Whether a text has no special meaning in a rule. */
const plain = (text: string) => text !== '' && text.length <= 500 && !/[*()\\\n:"']/.test(text);

interface Suggested {
  exact: string[];
  wider: string[];
}

const only = (rule: string | null): Suggested => ({ exact: rule === null ? [] : [rule], wider: [] });

function suggestionsFor(tool: string, input: Approval['input']): Suggested {
  const given = (name: string) => {
    const value = input[name];
    return typeof value === 'string' && plain(value) ? value : null;
  };
  const named = (value: string | null) => only(value === null ? null : `${tool}(${value})`);
  switch (tool) {
    case 'Bash':
    case 'Monitor':
      return shell(tool, typeof input['command'] === 'string' ? input['command'].trim() : '');
    case 'Edit':
    case 'Write':
    case 'MultiEdit':
      return files('Edit', given('file_path'));
    case 'NotebookEdit':
      return files('Edit', given('notebook_path'));
    case 'Read':
      return files('Read', given('file_path'));
    case 'Grep':
    case 'Glob':
    case 'LS':
      return files('Read', given('path'));
    case 'WebFetch': {
      const host = hostOf(input['url']);
      return named(host === null ? null : `domain:${host}`);
    }
    case 'Task':
    case 'Agent':
      return named(given('subagent_type'));
    case 'Skill':
      return named(given('skill'));
    // Their commands are not parsed, so the only possible rule would allow everything.
    case 'PowerShell':
    case 'REPL':
    case 'Workflow':
      return only(null);
    default:
      return only(/^[\w-]{1,200}$/.test(tool) ? tool : null);
  }
}

/** Programs whose second word is a subcommand. */
const WITH_SUBCOMMAND =
  /^(git|gh|npm|npx|pnpm|yarn|bun|cargo|go|docker|podman|kubectl|make|just|pip|uv|poetry|mvn|gradle|dotnet|systemctl|brew|apt)$/;

function shell(tool: 'Bash' | 'Monitor', command: string): Suggested {
  // A rule matches one command. A line with several commands, or with expansions, has no exact rule.
  const exact = plain(command) && !/[;&|<>$`{}[\]?!#~]/.test(command) ? [`${tool}(${command})`] : [];
  // Similar commands start with the same program and subcommand.
  const words = /^[^\n;&|<>`$()]+/.exec(command)?.[0].trim().split(/\s+/) ?? [];
  const odd = words.findIndex((word) => !/^[\w./@+-]+$/.test(word));
  const known = odd < 0 ? words : words.slice(0, odd);
  const first = known[0];
  if (first === undefined || first.startsWith('-')) return { exact, wider: [] };
  const count = !WITH_SUBCOMMAND.test(first) ? 1 : known[1] === 'run' ? 3 : 2;
  const like = known.slice(0, count).filter((word, at) => at === 0 || /^[a-z]/.test(word));
  // `:*` matches only options known to be harmless, so one suggestion spells out all of them.
  const options = known.map((word) => /^-./.test(word)).lastIndexOf(true);
  const spelled = options < 0 ? [] : [`${tool}(${known.slice(0, options + 1).join(' ')}:*)`];
  return { exact, wider: [`${tool}(${like.join(' ')}:*)`, ...spelled] };
}

function files(kind: 'Edit' | 'Read', path: string | null): Suggested {
  if (path === null) return only(null);
  const rooted = path.startsWith('/') ? `/${path}` : path;
  const folder = rooted.slice(0, Math.max(0, rooted.lastIndexOf('/')));
  return { exact: [`${kind}(${rooted})`], wider: folder.length > 1 ? [`${kind}(${folder}/**)`] : [] };
}

function hostOf(url: Json | undefined): string | null {
  try {
    const host = new URL(typeof url === 'string' ? url : '').hostname;
    return /^[a-z0-9.-]+$/.test(host) ? host : null;
  } catch {
    return null;
  }
}

/** What else a rule matches besides this call, in words; null if it matches only calls like this one. */
export function matchesBesides(rule: string): string | null {
  const [, tool, content] = /^([^()]+?)\s*(?:\((.*)\))?$/s.exec(rule.trim()) ?? [];
  if (tool === undefined) return null;
  if (content === undefined || /^(?::?\*+|\/*\*\*)$/.test(content.trim()))
    return /^mcp__[^_]+(?:_[^_]+)*(?:__\*)?$/.test(tool) && !/^mcp__.+?__[^*]/.test(tool)
      ? `every call of every tool of ${tool.replace(/^mcp__/, '').replace(/__\*$/, '')}`
      : `every call of ${tool}, whatever its input`;
  if (tool === 'WebFetch' && content.startsWith('domain:')) return `every page of ${content.slice('domain:'.length)}`;
  if (content.endsWith(':*')) return `every command that starts with ${content.slice(0, -2)}`;
  if (content.endsWith('/**')) return `every file below ${content.slice(0, -3)}`;
  return content.includes('*') ? 'every call that fits the pattern' : null;
}

/** The character index of a byte offset in a rule. */
export function characterAt(rule: string, byte: number): number {
  let bytes = 0;
  let at = 0;
  for (const character of rule) {
    if (bytes >= byte) break;
    bytes += new TextEncoder().encode(character).length;
    at += character.length;
  }
  return at;
}
