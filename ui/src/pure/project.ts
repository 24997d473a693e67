/** The project that a directory belongs to, as a short name. */

/** The last part of a path; a worktree belongs to the repository whose worktrees are beside it. */
export function projectName(directory: string): string {
  const parts = directory.split('/').filter((part) => part !== '');
  return parts.at(-1) ?? '/';
}
