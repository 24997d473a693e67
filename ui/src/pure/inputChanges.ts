/** The differences between the requested input and the input that ran. */

import type { Fields, Json } from '../wire';

export interface InputChange {
  name: string;
  before: string;
  after: string;
}

/** The changed fields; texts as they are, other values as JSON. */
export function inputChanges(original: Fields, input: Fields): InputChange[] {
  const shown = (value: Json | undefined) =>
    value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  const names = [...new Set([...Object.keys(original), ...Object.keys(input)])];
  return names
    .filter((name) => JSON.stringify(original[name]) !== JSON.stringify(input[name]))
    .map((name) => ({ name, before: shown(original[name]), after: shown(input[name]) }));
}

/** The answers to questions, if they are the only change; otherwise null. */
export function answersIn(tool: string, requested: Fields, ran: Fields): { question: string; answer: string }[] | null {
  const { answers, ...rest } = ran;
  if (tool !== 'AskUserQuestion' || answers === null || typeof answers !== 'object' || Array.isArray(answers))
    return null;
  if (inputChanges({ ...requested, answers: null }, { ...rest, answers: null }).length > 0) return null;
  return Object.entries(answers).map(([question, answer]) => ({
    question,
    answer: typeof answer === 'string' ? answer : JSON.stringify(answer),
  }));
}
