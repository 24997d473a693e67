/** Comments on lines of a review, and the prompt that brings them to the agent. */

/** The version of a file that a line belongs to. */
export type Side = 'old' | 'new';

export interface Comment {
  /** Unique in its review. */
  key: number;
  path: string;
  side: Side;
  line: number;
  /** The text of the line. */
  code: string;
  text: string;
}

/** The longest quoted line. */
const QUOTED = 300;

/** One prompt with all comments, in the order of the files and their lines. */
export function reviewPrompt(comments: readonly Comment[], summary: string): string {
  const sorted = comments.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line));
  const parts = sorted.map(({ path, side, line, code, text }) => {
    const where = side === 'old' ? `${path}, line ${line} of the old version` : `${path}, line ${line}`;
    const quoted = code.length > QUOTED ? `${code.slice(0, QUOTED)}…` : code;
    return `${where}:\n> ${quoted}\n${text.trim()}`;
  });
  const intro = 'I reviewed your changes. Please address these comments.';
  return [intro, ...(summary.trim() === '' ? [] : [summary.trim()]), ...parts].join('\n\n');
}

/** The request to resolve conflicts, for the agent. */
export function conflictPrompt(into: string, paths: readonly string[]): string {
  return [
    `Your branch conflicts with ${into}. Please merge ${into} into your branch, resolve the conflicts, run the tests, and commit the result.`,
    'Files that conflict:',
    paths.map((path) => `- ${path}`).join('\n'),
  ].join('\n\n');
}
