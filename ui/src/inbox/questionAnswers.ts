/** The answers to the questions of an agent, out of what was chosen and written in the form. */

import type { Question } from '../pure/toolInput';

export interface Chosen {
  /** Labels of options, in the order of the options. */
  labels: string[];
  /** An answer in own words. */
  own: string;
}

/** The answer to one question; null as long as there is none. Own words stand for themselves, or beside what was chosen of several. */
export function answerTo(question: Question, chosen: Chosen): string | null {
  const own = chosen.own.trim();
  const labels = question.options.map((option) => option.label).filter((label) => chosen.labels.includes(label));
  const parts = question.several ? [...labels, ...(own === '' ? [] : [own])] : own === '' ? labels.slice(0, 1) : [own];
  return parts.length === 0 ? null : parts.join(', ');
}

/** All answers, by the text of the question; null as long as one is missing. */
export function answersTo(questions: Question[], chosen: Chosen[]): Record<string, string> | null {
  const answers: [string, string][] = [];
  for (const [at, question] of questions.entries()) {
    const answer = answerTo(question, chosen[at] ?? { labels: [], own: '' });
    if (answer === null) return null;
    answers.push([question.text, answer]);
  }
  return Object.fromEntries(answers);
}
