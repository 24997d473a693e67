/** How this browser shows the console. The choices are kept in the browser's storage, which holds no credential. */

const KEY = 'plexus-preferences';

/** The programs that can open a file from a link. */
export const EDITORS = {
  none: 'No link',
  vscode: 'VS Code',
  cursor: 'Cursor',
  windsurf: 'Windsurf',
  zed: 'Zed',
} as const;

export type Editor = keyof typeof EDITORS;
export type DiffView = 'inline' | 'split';
export type Grouping = 'none' | 'project' | 'tree';

interface Choices {
  diff: DiffView;
  editor: Editor;
  grouping: Grouping;
  /** How many seconds an answer can be taken back before it is sent; 0 sends it at once. */
  undoSecs: number;
}

const DEFAULTS: Choices = { diff: 'inline', editor: 'none', grouping: 'none', undoSecs: 0 };

/** The stored choices. A value that this version does not know is replaced by the default. */
export function read(stored: string | null): Choices {
  let known: Partial<Record<keyof Choices, unknown>>;
  try {
    known = Object(JSON.parse(stored ?? '{}')) as typeof known;
  } catch {
    known = {};
  }
  const one = <T>(value: unknown, all: readonly T[], otherwise: T): T =>
    all.find((each) => each === value) ?? otherwise;
  return {
    diff: one(known.diff, ['inline', 'split'], DEFAULTS.diff),
    editor: one(known.editor, Object.keys(EDITORS) as Editor[], DEFAULTS.editor),
    grouping: one(known.grouping, ['none', 'project', 'tree'], DEFAULTS.grouping),
    undoSecs: one(known.undoSecs, [0, 3, 5, 10], DEFAULTS.undoSecs),
  };
}

class Preferences {
  private choices = $state<Choices>(read(stored()));
  /** Whether the dialog is open. */
  shown = $state(false);

  get<K extends keyof Choices>(name: K): Choices[K] {
    return this.choices[name];
  }

  set<K extends keyof Choices>(name: K, value: Choices[K]): void {
    this.choices[name] = value;
    try {
      localStorage.setItem(KEY, JSON.stringify(this.choices));
    } catch {
      // A browser without storage forgets the choice with the page.
    }
  }
}

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export const preferences = new Preferences();
