import { expect, test } from 'vitest';
import type { FileDiff } from '../wire';
import { fileTree } from './fileTree';

const shape = (paths: string[]) =>
  fileTree(paths.map((path) => ({ path }) as FileDiff)).map(
    (row) => `${'  '.repeat(row.level)}${row.name}${row.kind === 'directory' ? '/' : ''}`,
  );

test('directories come before files, and single directories are joined', () => {
  expect(shape(['z.md', 'src/deep/er/a.ts', 'src/deep/er/b.ts', 'src/c.ts', 'a.md', 'lib/x.ts'])).toEqual([
    'lib/',
    '  x.ts',
    'src/',
    '  deep/er/',
    '    a.ts',
    '    b.ts',
    '  c.ts',
    'a.md',
    'z.md',
  ]);
});

test('every file is listed once', () => {
  const paths = Array.from({ length: 300 }, (_, i) => `${'d/'.repeat(i % 40)}f${i}`);
  expect(shape(paths).filter((name) => !name.endsWith('/'))).toHaveLength(300);
  expect(shape([])).toEqual([]);
});
