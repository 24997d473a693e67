/**
 * Decides whether a pressed key may act as a shortcut. A person who types into a dialog that has just closed must not allow a call with the
 * next letter: no key acts while a dialog is open, and after a key closed one, keys act again only after a pause.
 */

/** The pause without keys after a key closed a dialog, in milliseconds. */
export const PAUSE = 400;

export class KeyGate {
  private dialogs = 0;
  private lastInput: 'key' | 'pointer' = 'pointer';
  private lastKey = -Infinity;
  /** Whether the person may still be typing into a dialog that is closed. */
  private typing = false;

  opened(): void {
    this.dialogs += 1;
  }

  closed(): void {
    this.dialogs -= 1;
    if (this.lastInput === 'key') this.typing = true;
  }

  pointed(): void {
    this.lastInput = 'pointer';
    this.typing = false;
  }

  /** A key was pressed. Returns whether it may act as a shortcut. */
  pressed(now: number): boolean {
    const pause = now - this.lastKey;
    this.lastInput = 'key';
    this.lastKey = now;
    if (this.dialogs > 0) return false;
    if (pause >= PAUSE) this.typing = false;
    return !this.typing;
  }
}
