/** What highlighting makes of a text, as a flat list; and which language a file is in. */

/** What a piece of code is; the page has a colour for each. */
export type TokenKind = 'keyword' | 'string' | 'number' | 'comment' | 'name' | 'type' | 'meta';

export interface Token {
  text: string;
  kind: TokenKind | null;
}

/** A tree as `lowlight` gives it, as far as it is looked at. */
export interface Tree {
  type: string;
  value?: string;
  properties?: { className?: unknown };
  children?: unknown[];
}

const KINDS: Record<string, TokenKind> = {
  keyword: 'keyword',
  literal: 'keyword',
  'selector-tag': 'keyword',
  operator: 'keyword',
  section: 'keyword',
  tag: 'keyword',
  string: 'string',
  regexp: 'string',
  symbol: 'string',
  code: 'string',
  link: 'string',
  quote: 'comment',
  number: 'number',
  comment: 'comment',
  doctag: 'comment',
  title: 'name',
  name: 'name',
  attr: 'name',
  attribute: 'name',
  property: 'name',
  'selector-class': 'name',
  'selector-id': 'name',
  bullet: 'name',
  type: 'type',
  built_in: 'type',
  class: 'type',
  variable: 'type',
  'template-variable': 'type',
  params: 'type',
  strong: 'type',
  meta: 'meta',
  subst: 'meta',
};

/** The leaves of the tree, each with the nearest class above it that has a colour. */
export function flattenTree(root: Tree): Token[] {
  const pieces: Token[] = [];
  const walk = (node: Tree, kind: TokenKind | null): void => {
    if (node.type === 'text') {
      const last = pieces.at(-1);
      if (last && last.kind === kind) last.text += node.value ?? '';
      else pieces.push({ text: node.value ?? '', kind });
      return;
    }
    const classes = Array.isArray(node.properties?.className) ? node.properties.className : [];
    const own = KINDS[String(classes[0] ?? '').replace(/^hljs-/, '')] ?? kind;
    for (const child of node.children ?? []) walk(child as Tree, own);
  };
  walk(root, null);
  return pieces;
}

const BY_EXTENSION: Record<string, string> = {
  sh: 'bash',
  bash: 'bash',
  zsh: 'bash',
  css: 'css',
  scss: 'css',
  go: 'go',
  toml: 'ini',
  ini: 'ini',
  cfg: 'ini',
  conf: 'ini',
  env: 'ini',
  java: 'java',
  kt: 'java',
  js: 'javascript',
  mjs: 'javascript',
  cjs: 'javascript',
  jsx: 'javascript',
  json: 'json',
  jsonl: 'json',
  ipynb: 'json',
  md: 'markdown',
  markdown: 'markdown',
  py: 'python',
  pyi: 'python',
  rb: 'ruby',
  rs: 'rust',
  sql: 'sql',
  ts: 'typescript',
  mts: 'typescript',
  tsx: 'typescript',
  html: 'xml',
  htm: 'xml',
  xml: 'xml',
  svg: 'xml',
  svelte: 'xml',
  vue: 'xml',
  yaml: 'yaml',
  yml: 'yaml',
  shell: 'bash',
  python: 'python',
  rust: 'rust',
  javascript: 'javascript',
  typescript: 'typescript',
  ruby: 'ruby',
};

/** The language of a file, by the end of its name (or of a block of code, by the word beside it); null if it is none of ours. */
export function languageOf(path: string): string | null {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  const end = name.slice(name.lastIndexOf('.') + 1);
  return Object.hasOwn(BY_EXTENSION, end) ? BY_EXTENSION[end]! : null;
}
