/** Reads fields of JSON objects that an agent wrote, whatever their type is. */

import type { Fields } from '../wire';

/** The value if it is a text, else an empty text. */
export const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** A text, number or flag as text; anything else is empty. */
export const plain = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';

/** The value if it is an object, else an empty object. */
export const object = (value: unknown): Fields =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Fields) : {};
