/** Highlighted code as a flat list of tokens, and the language of a file. */

/** The kinds of tokens, each with a colour. */
export type TokenKind = 'keyword' | 'string' | 'number' | 'comment' | 'name' | 'type' | 'meta';

export interface Token {
  text: string;
  kind: TokenKind | null;
}

/** The parts of a `lowlight` tree that are used. */
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

/** The leaves of the tree, each with the nearest enclosing kind. */
export function flattenTree(root: Tree): Token[] {
  const tokens: Token[] = [];
  const walk = (node: Tree, kind: TokenKind | null): void => {
    if (node.type === 'text') {
      const last = tokens.at(-1);
      if (last && last.kind === kind) last.text += node.value ?? '';
      else tokens.push({ text: node.value ?? '', kind });
      return;
    }
    const classes = Array.isArray(node.properties?.className) ? node.properties.className : [];
    const own = KINDS[String(classes[0] ?? '').replace(/^hljs-/, '')] ?? kind;
    for (const child of node.children ?? []) walk(child as Tree, own);
  };
  walk(root, null);
  return tokens;
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

/** The language of a file by its extension, or of a code block by its info string; null if it is unknown. */
export function languageOf(path: string): string | null {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  const end = name.slice(name.lastIndexOf('.') + 1);
  return Object.hasOwn(BY_EXTENSION, end) ? BY_EXTENSION[end]! : null;
}
