/** Downloads the transcript of a session as a file. */

import { call } from '../stores/api';
import type { TranscriptFormat } from '../wire';

/** The most pages of a transcript that are read. */
const MOST_PAGES = 2_000;
const TYPES: Record<TranscriptFormat, [type: string, extension: string]> = {
  html: ['text/html', 'html'],
  markdown: ['text/markdown', 'md'],
  jsonl: ['application/jsonl', 'jsonl'],
};

/** Reads the whole transcript and lets the browser save it. */
export async function downloadTranscript(session_id: string, name: string, format: TranscriptFormat): Promise<void> {
  const pieces: string[] = [];
  let from: number | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { text, next } = await call('claudecode.transcript', {
      session_id,
      format,
      ...(from === undefined ? {} : { from }),
    });
    pieces.push(text);
    if (next === undefined) break;
    from = next;
  }
  const [type, extension] = TYPES[format];
  const address = URL.createObjectURL(new Blob(pieces, { type }));
  const link = document.createElement('a');
  link.href = address;
  link.download = `${name.replace(/[^\p{L}\p{N}._-]+/gu, '-')}.${extension}`;
  link.click();
  // The browser has taken the content over by then.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
