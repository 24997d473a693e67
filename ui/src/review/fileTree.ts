/** The changed files as a tree of directories. A directory with one child is joined with it. */

import type { FileDiff } from '../wire';

export type Entry =
  | { kind: 'directory'; name: string; path: string; level: number }
  | { kind: 'file'; name: string; file: FileDiff; level: number };

interface Directory {
  directories: Map<string, Directory>;
  files: FileDiff[];
}

/** The rows of the tree: directories before files, each in alphabetical order. */
export function fileTree(files: readonly FileDiff[]): Entry[] {
  const root: Directory = { directories: new Map(), files: [] };
  for (const file of files) {
    let at = root;
    for (const part of file.path.split('/').slice(0, -1)) {
      let next = at.directories.get(part);
      if (!next) at.directories.set(part, (next = { directories: new Map(), files: [] }));
      at = next;
    }
    at.files.push(file);
  }
  return rows(root, '', 0);
}

function rows(directory: Directory, path: string, level: number): Entry[] {
  const below = [...directory.directories]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([first, only]): Entry[] => {
      const { name, directory: inner } = joined(first, only);
      return [{ kind: 'directory', name, path: path + name, level }, ...rows(inner, `${path}${name}/`, level + 1)];
    });
  const files = directory.files
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .map((file): Entry => ({ kind: 'file', name: file.path.split('/').at(-1)!, file, level }));
  return [...below, ...files];
}

/** A directory whose only content is another directory is shown with it, as `a/b`. */
function joined(name: string, directory: Directory): { name: string; directory: Directory } {
  let at = { name, directory };
  while (at.directory.files.length === 0 && at.directory.directories.size === 1) {
    const [inner] = at.directory.directories;
    at = { name: `${at.name}/${inner![0]}`, directory: inner![1] };
  }
  return at;
}
