import { expect, test } from 'vitest';
import { byteSize, truncate, money, chunks, duration, visible, errorText } from './text';

test('misleading characters become escapes', () => {
  expect(visible('a\u001b[31mb\u202ec\u0000\u200b\u{e0041}')).toBe('a\\u{1b}[31mb\\u{202e}c\\u{0}\\u{200b}\\u{e0041}');
  expect(visible('Grüße, 世界\n\tend 👩‍🚀'.replaceAll('\u200d', ''))).toBe('Grüße, 世界\n\tend 👩🚀');
});

test('unusual blanks, fillers and lone surrogates become escapes', () => {
  expect(visible('a\u00a0b\u3000c\u2800d\u3164e\ufe0ff\u034fg\r')).toBe(
    'a\\u{a0}b\\u{3000}c\\u{2800}d\\u{3164}e\\u{fe0f}f\\u{34f}g\\u{d}',
  );
  expect(visible('x\ud800y')).toBe('x\\u{d800}y');
  expect(visible('a b\tc\nd')).toBe('a b\tc\nd');
});

test('a character is not split', () => {
  expect(truncate('ab👩', 3)).toEqual({ text: 'ab', left: 2 });
  expect(truncate('abc', 3)).toEqual({ text: 'abc', left: 0 });
});

test('the chunks of a text make up the text', () => {
  const text = `${'a'.repeat(50)}\n\n${'b'.repeat(30)}\n${'c'.repeat(250)}`;
  const all = chunks(text, 100);
  expect(all.join('')).toBe(text);
  expect(all.map((piece) => piece.length)).toEqual([51, 32, 100, 100, 50]);
  expect(chunks('', 5)).toEqual([]);
});

test('amounts and durations are short', () => {
  expect([money(0), money(0.0005), money(1.5)]).toEqual(['$0.00', '<$0.01', '$1.50']);
  expect([duration(5), duration(125), duration(3600), duration(7260), duration(200000)]).toEqual([
    '5 s',
    '2 min 5 s',
    '1 h',
    '2 h 1 min',
    '2 d',
  ]);
});

test('an error message is made safe to show', () => {
  expect(errorText(new Error('no `a\u202eb`'))).toBe('no `a\\u{202e}b`');
  expect(errorText('x'.repeat(1_000_000))).toHaveLength(2_000);
});

test('a size is written in its largest unit', () => {
  expect([0, 1023, 1536, 20_480, 5 * 1024 * 1024, 12_000_000].map(byteSize)).toEqual([
    '0 bytes',
    '1023 bytes',
    '1.5 KiB',
    '20 KiB',
    '5.0 MiB',
    '11 MiB',
  ]);
});
