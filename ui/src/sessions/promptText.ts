/** The text of a prompt, with a line for each of its files: name, type and size. */

import { object, text } from '../pure/fields';
import { imageBlock, type ImageBlock } from '../pure/image';
import type { Json } from '../wire';
import { resultText } from './toolCall';

/** The line for a file. */
export function fileLine(name: string, mediaType: string, bytes: number): string {
  return `[${name}, ${mediaType}, ${bytes.toLocaleString('en')} bytes]`;
}

/** The lines for the files of an event. */
export function fileLines(files: Json | undefined): string[] {
  if (!Array.isArray(files)) return [];
  return files.map((file) => {
    const fields = object(file);
    return fileLine(text(fields['name']), text(fields['media_type']), Number(fields['bytes'] ?? 0));
  });
}

/** The content of a prompt's node. */
export function promptText(content: Json): string {
  if (!Array.isArray(content)) return resultText(content);
  return content
    .map((block) => {
      const fields = object(block);
      const name = fields['name'];
      if (typeof name !== 'string') return resultText([block]);
      const mediaType = fields['media_type'] ?? object(fields['source'])['media_type'];
      return fileLine(name, text(mediaType), Number(fields['bytes'] ?? 0));
    })
    .join('\n');
}

/** The images among the files of a prompt. */
export function promptImages(content: Json): ImageBlock[] {
  return Array.isArray(content) ? content.map(imageBlock).filter((image) => image !== null) : [];
}
