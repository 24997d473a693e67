/**
 * Pictures in data that agents wrote. A picture is shown only if its bytes prove that it is a PNG, JPEG, GIF or WebP file of a bounded
 * size, whatever type was claimed. SVG is a document that can contain scripts, so it is never shown. Everything else is described in words.
 */

import type { Json } from '../wire';
import { object, text } from './fields';

/** The largest file, in bytes: the largest image of a tool result or a prompt. */
export const MAX_BYTES = 5 * 1024 * 1024;
/** The most pixels. The browser decodes a picture to four bytes for each. */
export const MAX_PIXELS = 32_000_000;

export type ImageType = 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp';

export type Picture =
  | { kind: 'shown'; src: string; type: ImageType; width: number; height: number; bytes: number }
  | { kind: 'refused'; why: string };

/** An image block of a tool result or a prompt. */
export interface ImageBlock {
  /** The name of the file; empty if there is none. */
  name: string;
  /** The type that the block claims. */
  claimed: string;
  /** The base64 of the file. */
  data: string;
}

/** The image in a content block; `null` for other blocks. */
export function imageBlock(block: Json): ImageBlock | null {
  const fields = object(block);
  if (fields['type'] !== 'image') return null;
  const source = object(fields['source']);
  return {
    name: text(fields['name']),
    claimed: text(source['media_type']) || text(fields['media_type']) || text(fields['mimeType']),
    // The blocks of MCP have their data outside `source`.
    data: text(source['data']) || text(fields['data']),
  };
}

/** The picture in a base64 text, or why it is not shown. */
export function picture(data: string): Picture {
  if (data === '') return { kind: 'refused', why: 'its content is not stored' };
  const bytes = Math.floor((data.replace(/=+$/, '').length * 3) / 4);
  if (data.length > MAX_BYTES * 1.4 || bytes > MAX_BYTES) return { kind: 'refused', why: 'it is larger than 5 MiB' };
  const content = decoded(data);
  if (content === null) return { kind: 'refused', why: 'its content is not valid base64' };
  const found = dimensions(content);
  if (found === null) return { kind: 'refused', why: 'it is not a PNG, JPEG, GIF or WebP file' };
  const { type, width, height } = found;
  if (width === 0 || height === 0) return { kind: 'refused', why: 'it has no pixels' };
  if (width * height > MAX_PIXELS)
    return { kind: 'refused', why: `${width} × ${height} pixels are too many for this page` };
  return { kind: 'shown', src: `data:${type};base64,${data}`, type, width, height, bytes };
}

function decoded(data: string): Uint8Array | null {
  // `atob` ignores blanks, which do not belong into an address.
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return null;
  try {
    return Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

interface Dimensions {
  type: ImageType;
  width: number;
  height: number;
}

/** The type and the size in pixels, from the header of the file. */
function dimensions(content: Uint8Array): Dimensions | null {
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  const ascii = (at: number, length: number) => String.fromCharCode(...content.subarray(at, at + length));
  try {
    if (ascii(0, 8) === '\x89PNG\r\n\x1a\n' && ascii(12, 4) === 'IHDR')
      return { type: 'image/png', width: view.getUint32(16), height: view.getUint32(20) };
    if (['GIF87a', 'GIF89a'].includes(ascii(0, 6)))
      return { type: 'image/gif', width: view.getUint16(6, true), height: view.getUint16(8, true) };
    if (ascii(0, 4) === 'RIFF' && ascii(8, 4) === 'WEBP') return webp(view, ascii(12, 4));
    if (view.getUint16(0) === 0xff_d8) return jpeg(view);
  } catch (error) {
    // The header is incomplete.
    if (!(error instanceof RangeError)) throw error;
  }
  return null;
}

function webp(view: DataView, chunk: string): Dimensions | null {
  const type = 'image/webp';
  const three = (at: number) => view.getUint16(at, true) + (view.getUint8(at + 2) << 16);
  if (chunk === 'VP8X') return { type, width: three(24) + 1, height: three(27) + 1 };
  if (chunk === 'VP8 ')
    return { type, width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
  if (chunk !== 'VP8L' || view.getUint8(20) !== 0x2f) return null;
  const bits = view.getUint32(21, true);
  return { type, width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
}

/** The frame header is one of the first segments, and each segment has its length. */
function jpeg(view: DataView): Dimensions | null {
  for (let at = 2; view.getUint8(at) === 0xff;) {
    const marker = view.getUint8(at + 1);
    if (marker === 0xff) {
      // A fill byte.
      at += 1;
      continue;
    }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { type: 'image/jpeg', width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    at += 2 + Math.max(2, view.getUint16(at + 2));
  }
  return null;
}
