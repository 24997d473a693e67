/** Syntax highlighting. The grammars are loaded when the first code is shown. */

import { flattenTree, type Token } from '../pure/syntax';

/** Longer texts are not highlighted: grammars take quadratic time in the length of a line. */
const MOST = 12_000;
const LONGEST_LINE = 600;

const LONG = new RegExp(`[^\\n]{${LONGEST_LINE}}`);

class Highlighter {
  private grammars = $state.raw<typeof import('../pure/languages').lowlight | null>(null);
  private requested = false;

  /** The text as tokens; one token while the grammars are loading or if the language is unknown. */
  tokens(text: string, language: string | null): Token[] {
    if (language === null || text.length > MOST || LONG.test(text)) return [{ text, kind: null }];
    this.load();
    if (this.grammars === null) return [{ text, kind: null }];
    try {
      return flattenTree(this.grammars.highlight(language, text));
    } catch {
      return [{ text, kind: null }];
    }
  }

  private load(): void {
    if (this.requested) return;
    this.requested = true;
    import('../pure/languages').then(
      ({ lowlight }) => (this.grammars = lowlight),
      () => (this.requested = false),
    );
  }
}

export const highlighter = new Highlighter();
