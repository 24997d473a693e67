/** Links that open a file in an editor on the same machine. */

import type { Editor } from '../stores/preferences.svelte';

/** The address for an absolute path and a line; null if no editor is chosen or the path is not absolute. */
export function editorLink(editor: Editor, path: string, line: number | null = null): string | null {
  if (editor === 'none' || !path.startsWith('/')) return null;
  try {
    // The path comes from an agent: each part is encoded, so it cannot change the meaning of the address.
    const encoded = path.split('/').map(encodeURIComponent).join('/');
    return `${editor}://file${encoded}${line === null ? '' : `:${line}`}`;
  } catch {
    // A path with half a character has no address.
    return null;
  }
}
