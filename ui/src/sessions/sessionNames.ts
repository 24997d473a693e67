/** Names for new sessions, and the prompts of several sessions that are started from one list. */

const LONGEST = 40;

/** A name from the first words of a prompt. */
export function nameFor(prompt: string): string {
  const words = prompt
    .normalize('NFKD')
    .replace(/[^\w\s-]/g, '')
    .toLowerCase()
    .split(/[\s_]+/)
    .filter((word) => /\w/.test(word));
  let name = '';
  for (const word of words.slice(0, 5)) {
    if (name.length + word.length + 1 > LONGEST) break;
    name += (name === '' ? '' : '-') + word;
  }
  return name === '' ? 'session' : name;
}

/** The name, with a number if a session has it already. */
export function freeName(name: string, taken: ReadonlySet<string>): string {
  if (!taken.has(name)) return name;
  for (let number = 2; ; number += 1) {
    const numbered = `${name.slice(0, 60)}-${number}`;
    if (!taken.has(numbered)) return numbered;
  }
}

/** One prompt for each line of a list. `{}` in the prompt stands for the line; without it, the line follows the prompt. */
export function promptsOf(prompt: string, list: string): { line: string; prompt: string }[] {
  return list
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => ({
      line,
      prompt: prompt.includes('{}') ? prompt.replaceAll('{}', () => line) : `${prompt.trimEnd()}\n\n${line}`.trim(),
    }));
}

/** The list without the first such line. */
export function withoutLine(list: string, line: string): string {
  const lines = list.split('\n');
  const at = lines.findIndex((one) => one.trim() === line);
  return at < 0 ? list : lines.toSpliced(at, 1).join('\n');
}
