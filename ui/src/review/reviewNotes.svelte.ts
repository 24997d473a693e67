/**
 * What a person notes during a review: which files they have viewed, and their comments. Notes are kept in the browser's storage, so that
 * a reload loses none; they hold no credential.
 */

import type { FileDiff } from '../wire';
import type { Comment } from './comments';

interface Notes {
  /** The version of each viewed file: a file that changed again is no longer viewed. */
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
    return file.version !== undefined && this.notes.viewed[file.path] === file.version;
  }

  setViewed(file: FileDiff, viewed: boolean): void {
    const { [file.path]: _, ...others } = this.notes.viewed;
    const isKnown = viewed && file.version !== undefined;
    this.save({ ...this.notes, viewed: isKnown ? { ...others, [file.path]: file.version ?? '' } : others });
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
