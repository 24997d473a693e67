import { expect, test } from 'vitest';
import { imageBlock, MAX_BYTES, picture } from './image';

const base64 = (...parts: (string | number[])[]) =>
  btoa(parts.map((part) => (typeof part === 'string' ? part : String.fromCharCode(...part))).join(''));
const png = (width: number, height: number) => {
  const number = (value: number) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255);
  return base64('\x89PNG\r\n\x1a\n', number(13), 'IHDR', number(width), number(height), [8, 6, 0, 0, 0]);
};
const why = (data: string) => {
  const found = picture(data);
  return found.kind === 'refused' ? found.why : null;
};

test('the bytes of a file prove its type and its size', () => {
  const jpeg = base64([0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xff, 0xc2, 0, 17, 8, 0, 48, 0, 64, 3]);
  const lossless = base64('RIFF', [0, 0, 0, 0], 'WEBPVP8L', [9, 0, 0, 0, 0x2f, 63, 0xc0, 11, 0]);
  const lossy = base64('RIFF', [0, 0, 0, 0], 'WEBPVP8 ', [9, 0, 0, 0, 0, 0, 0, 0x9d, 1, 0x2a, 64, 0, 48, 0]);
  const extended = base64('RIFF', [0, 0, 0, 0], 'WEBPVP8X', [10, 0, 0, 0, 0, 0, 0, 0, 63, 0, 0, 47, 0, 0]);
  for (const [data, type] of [
    [png(64, 48), 'image/png'],
    [jpeg, 'image/jpeg'],
    [base64('GIF89a', [64, 0, 48, 0]), 'image/gif'],
    [lossless, 'image/webp'],
    [lossy, 'image/webp'],
    [extended, 'image/webp'],
  ] as const) {
    expect(picture(data)).toMatchObject({ kind: 'shown', type, width: 64, height: 48 });
    expect(picture(data)).toMatchObject({ src: `data:${type};base64,${data}` });
  }
});

test('what is not exactly such a picture is refused with a reason', () => {
  expect(why(base64('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'))).toContain('not a PNG');
  expect(why(png(60_000, 60_000))).toBe('60000 × 60000 pixels are too many for this page');
  expect(why(png(0, 9))).toContain('no pixels');
  expect(why('')).toContain('not stored');
  expect(why('%3Csvg')).toContain('base64');
  expect(why(`${png(1, 1)}"><script>`)).toContain('base64');
  expect(why(`${png(1, 1)}\n`)).toContain('base64');
  expect(why('A'.repeat(MAX_BYTES * 1.5))).toContain('larger');
  // Headers that end early, and a file without a frame.
  for (const data of [
    base64('\x89PNG\r\n\x1a\n'),
    base64('GIF89a'),
    base64('RIFFxxxxWEBPVP8X'),
    base64([0xff, 0xd8]),
    base64([0xff, 0xd8, 0xff, 0xe0, 0, 0]),
    base64([0xff, 0xd8, 0, 0, 0]),
  ])
    expect(why(data)).toContain('not a PNG');
});

test('images are found in the blocks of a prompt, of Claude Code and of MCP', () => {
  const source = { type: 'base64', media_type: 'image/png', data: 'AAAA' };
  expect(imageBlock({ type: 'image', name: 'a.png', source })).toEqual({
    name: 'a.png',
    claimed: 'image/png',
    data: 'AAAA',
  });
  expect(imageBlock({ type: 'image', data: 'AAAA', mimeType: 'image/jpeg' })).toEqual({
    name: '',
    claimed: 'image/jpeg',
    data: 'AAAA',
  });
  expect(imageBlock({ type: 'image', media_type: 'image/png', bytes: 9 })?.data).toBe('');
  for (const other of [{ type: 'text', text: 'a' }, 7, null, ['image']]) expect(imageBlock(other)).toBeNull();
});
