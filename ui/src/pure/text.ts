/** Formatting of texts, numbers and times. Texts that agents wrote are made safe to show. */

/** Control characters, unassigned characters, direction marks, invisible characters, unusual blanks and lone surrogates. */
const MISLEADING = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** Replaces characters that could mislead the reader by escapes such as `\u{202e}`. */
export function visible(text: string): string {
  return text.replace(MISLEADING, (character) =>
    ' \t\n'.includes(character) ? character : `\\u{${character.codePointAt(0)!.toString(16)}}`,
  );
}

/** The message of an error, safe to show: it may quote an agent. */
export function errorText(error: unknown): string {
  return visible(truncate(error instanceof Error ? error.message : String(error), 2_000).text);
}

/** The first `most` characters, and the number of characters left. */
export function truncate(text: string, most: number): { text: string; left: number } {
  if (text.length <= most) return { text, left: 0 };
  // Not within a surrogate pair.
  const end = /[\ud800-\udbff]/.test(text[most - 1] ?? '') ? most - 1 : most;
  return { text: text.slice(0, end), left: text.length - end };
}

/** The text in chunks of at most `most` characters, split between paragraphs or else between lines. */
export function chunks(text: string, most: number): string[] {
  const all: string[] = [];
  let rest = text;
  while (rest.length > most) {
    const at = [rest.lastIndexOf('\n\n', most - 1), rest.lastIndexOf('\n', most - 1)].find((at) => at > 0);
    const piece = at === undefined ? truncate(rest, most).text : rest.slice(0, at + 1);
    all.push(piece);
    rest = rest.slice(piece.length);
  }
  return rest === '' ? all : [...all, rest];
}

/** A number of bytes in its largest unit. */
export function byteSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  const [unit, name] = bytes < 1024 * 1024 ? [1024, 'KiB'] : [1024 * 1024, 'MiB'];
  return `${(bytes / unit).toFixed(bytes < 10 * unit ? 1 : 0)} ${name}`;
}

/** An amount of money in cents. An amount below half a cent is not shown as nothing. */
export function money(usd: number): string {
  return usd > 0 && usd < 0.005 ? '<$0.01' : `$${usd.toFixed(2)}`;
}

/** An amount of money that is still growing, in hundredths of a cent: small changes are visible. */
export function preciseMoney(usd: number): string {
  return `$${usd.toFixed(4)}`;
}

/** A number of seconds in its one or two largest units. */
export function duration(seconds: number): string {
  const total = Math.max(0, Math.round(seconds));
  const [days, hours, minutes] = [86_400, 3_600, 60].map((unit) => Math.floor(total / unit)) as [
    number,
    number,
    number,
  ];
  if (minutes === 0) return `${total} s`;
  if (hours === 0) return total % 60 && minutes < 10 ? `${minutes} min ${total % 60} s` : `${minutes} min`;
  if (days === 0) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${days} d`;
}

/** A time; the date is added unless it is today. */
export function timeText(at: number): string {
  const then = new Date(at * 1000);
  return then.toDateString() === new Date().toDateString() ? then.toLocaleTimeString() : then.toLocaleString();
}
