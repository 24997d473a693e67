import type { FileDiff, FileMode } from '../wire';

const WORDS: Record<FileMode, string> = {
  plain: 'plain file',
  executable: 'executable',
  link: 'symbolic link',
  submodule: 'submodule',
};

/** What a file is or becomes, unless it stays a plain file: "executable", "was plain file, now symbolic link". */
export function modeText({ old_mode, new_mode }: Pick<FileDiff, 'old_mode' | 'new_mode'>): string {
  if (old_mode !== undefined && new_mode !== undefined && old_mode !== new_mode)
    return `was ${WORDS[old_mode]}, now ${WORDS[new_mode]}`;
  const mode = new_mode ?? old_mode;
  return mode === undefined || mode === 'plain' ? '' : WORDS[mode];
}
