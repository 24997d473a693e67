/** Code in colours: text in, pieces with a class out. The grammars are loaded when they are first wanted. */

import { flatten, type Piece } from './pieces';

/** Beyond this, colours are not worth the time; grammars take the square of the length of a line. */
const MOST = 12_000;
const LONGEST_LINE = 600;

const LONG = new RegExp(`[^\\n]{${LONGEST_LINE}}`);

class Highlighter {
  private grammars = $state.raw<typeof import('./languages').lowlight | null>(null);
  private asked = false;

  /** The text in pieces; in one, as long as the grammars are not there or for a language that is not known. */
  pieces(text: string, language: string | null): Piece[] {
    if (language === null || text.length > MOST || LONG.test(text)) return [{ text, kind: null }];
    this.load();
    if (this.grammars === null) return [{ text, kind: null }];
    try {
      return flatten(this.grammars.highlight(language, text));
    } catch {
      return [{ text, kind: null }];
    }
  }

  private load(): void {
    if (this.asked) return;
    this.asked = true;
    import('./languages').then(
      ({ lowlight }) => (this.grammars = lowlight),
      () => (this.asked = false),
    );
  }
}

export const highlighter = new Highlighter();
