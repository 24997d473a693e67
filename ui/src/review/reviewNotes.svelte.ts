/**
 * What a person notes during a review: which files they have viewed, and their comments. Notes are kept in the browser's storage, so that
 * a reload loses none; they hold no credential.
 */

import type { FileDiff } from '../wire';
import type { Comment } from './comments';

interface Notes {
  /** The changes of each viewed file, as a checksum: a file that changed again is no longer viewed. */
  viewed: Record<string, string>;
  comments: Comment[];
  summary: string;
}

const EMPTY: Notes = { viewed: {}, comments: [], summary: '' };

export class ReviewNotes {
  private notes = $state.raw<Notes>(EMPTY);
  private readonly key: string;

  constructor(session: string) {
    this.key = `plexus-review-${session}`;
    try {
      const stored = JSON.parse(localStorage.getItem(this.key) ?? 'null') as Partial<Notes> | null;
      this.notes = {
        viewed: stored?.viewed ?? {},
        comments: Array.isArray(stored?.comments) ? stored.comments : [],
        summary: typeof stored?.summary === 'string' ? stored.summary : '',
      };
    } catch {
      // Unreadable notes are forgotten.
    }
  }

  get comments(): readonly Comment[] {
    return this.notes.comments;
  }

  get summary(): string {
    return this.notes.summary;
  }

  set summary(summary: string) {
    this.save({ ...this.notes, summary });
  }

  isViewed(file: FileDiff): boolean {
    return this.notes.viewed[file.path] === checksum(file);
  }

  setViewed(file: FileDiff, viewed: boolean): void {
    const { [file.path]: _, ...others } = this.notes.viewed;
    this.save({ ...this.notes, viewed: viewed ? { ...others, [file.path]: checksum(file) } : others });
  }

  add(comment: Omit<Comment, 'key'>): void {
    const key = 1 + this.notes.comments.reduce((most, one) => Math.max(most, one.key), 0);
    this.save({ ...this.notes, comments: [...this.notes.comments, { ...comment, key }] });
  }

  remove(key: number): void {
    this.save({ ...this.notes, comments: this.notes.comments.filter((one) => one.key !== key) });
  }

  /** Forgets the comments, after they were sent. */
  clear(): void {
    this.save({ ...this.notes, comments: [], summary: '' });
  }

  private save(notes: Notes): void {
    this.notes = notes;
    try {
      localStorage.setItem(this.key, JSON.stringify(notes));
    } catch {
      // A browser without storage forgets the notes with the page.
    }
  }
}

/** A checksum of a file's changes (FNV-1a). It detects changes and protects nothing. */
export function checksum(file: Pick<FileDiff, 'patch' | 'status' | 'insertions' | 'deletions'>): string {
  let hash = 0x811c9dc5;
  for (const character of `${file.status} ${file.insertions} ${file.deletions} ${file.patch ?? ''}`)
    hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193);
  return (hash >>> 0).toString(16);
}
