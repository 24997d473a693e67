/** The answers to an agent's questions, from the options and the text of the form. */

import type { Question } from '../pure/toolInput';

export interface Chosen {
  /** Labels of options, in the order of the options. */
  labels: string[];
  /** The other answer that the person typed. */
  own: string;
}

/** The answer to one question; null while there is none. A typed answer replaces a single choice, and is added to several. */
export function answerTo(question: Question, chosen: Chosen): string | null {
  const own = chosen.own.trim();
  const labels = question.options.map((option) => option.label).filter((label) => chosen.labels.includes(label));
  const parts = question.several ? [...labels, ...(own === '' ? [] : [own])] : own === '' ? labels.slice(0, 1) : [own];
  return parts.length === 0 ? null : parts.join(', ');
}

/** All answers, by the text of the question; null while one is missing. */
export function answersTo(questions: Question[], chosen: Chosen[]): Record<string, string> | null {
  const answers: [string, string][] = [];
  for (const [at, question] of questions.entries()) {
    const answer = answerTo(question, chosen[at] ?? { labels: [], own: '' });
    if (answer === null) return null;
    answers.push([question.text, answer]);
  }
  return Object.fromEntries(answers);
}
