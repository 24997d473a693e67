/** Ranks what a person may be looking for by the words they typed. */

/** How well a text matches: 0 if a word is missing, more if words are found at the start of the text or of a word in it. */
export function score(query: string, text: string): number {
  const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
  const searched = text.toLowerCase();
  let total = 1;
  for (const word of wanted) {
    const at = searched.indexOf(word);
    if (at < 0) return 0;
    total += at === 0 ? 4 : new RegExp(`[^\\p{L}\\p{N}]${escaped(word)}`, 'u').test(searched) ? 2 : 1;
  }
  return total;
}

/** The best matches, in their own order if they match equally well. */
export function best<T>(query: string, all: readonly T[], textOf: (one: T) => string, most: number): T[] {
  return all
    .map((one, order) => ({ one, order, points: score(query, textOf(one)) }))
    .filter(({ points }) => points > 0)
    .sort((a, b) => b.points - a.points || a.order - b.order)
    .slice(0, most)
    .map(({ one }) => one);
}

function escaped(word: string): string {
  return word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
