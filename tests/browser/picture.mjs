// Takes small pictures of a page: it decodes a screenshot and encodes it again with at most 256 colours. That is enough for a page of text
// and a third of the size.
import { writeFileSync } from 'node:fs';
import { crc32, deflateSync, inflateSync } from 'node:zlib';

/** Writes a screenshot of the visible part of the page to a file. */
export async function picture(page, path) {
  writeFileSync(path, encoded(decoded(await page.screenshot({ type: 'png', animations: 'disabled', caret: 'hide' }))));
}

/** The pixels of a PNG that Chromium wrote: 8 bits each of red, green, blue and optionally alpha. */
function decoded(png) {
  const data = [];
  let head = null;
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const type = png.toString('latin1', at + 4, at + 8);
    const body = png.subarray(at + 8, at + 8 + length);
    if (type === 'IHDR') head = { width: body.readUInt32BE(0), height: body.readUInt32BE(4), bytes: body[9] === 6 ? 4 : 3 };
    if (type === 'IDAT') data.push(body);
    at += length + 12;
  }
  const { width, height, bytes } = head;
  const raw = inflateSync(Buffer.concat(data));
  const line = width * bytes;
  const pixels = Buffer.alloc(line * height);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (line + 1)];
    for (let x = 0; x < line; x++) {
      const left = x >= bytes ? pixels[y * line + x - bytes] : 0;
      const up = y > 0 ? pixels[(y - 1) * line + x] : 0;
      const corner = x >= bytes && y > 0 ? pixels[(y - 1) * line + x - bytes] : 0;
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      pixels[y * line + x] = raw[y * (line + 1) + 1 + x] + guess;
    }
  }
  return { width, height, bytes, pixels };
}

function paeth(left, up, corner) {
  const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

/** A PNG with the most frequent colours. Every other colour becomes the nearest of them. */
function encoded({ width, height, bytes, pixels }) {
  const counts = new Map();
  const colour = (at) => (pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2];
  for (let at = 0; at < pixels.length; at += bytes) counts.set(colour(at), (counts.get(colour(at)) ?? 0) + 1);
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([one]) => one);
  const places = new Map(palette.map((one, place) => [one, place]));
  const place = (one) => {
    if (!places.has(one)) places.set(one, nearest(palette, one));
    return places.get(one);
  };
  const raw = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) raw[y * (width + 1) + 1 + x] = place(colour((y * width + x) * bytes));
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((one) => [one >> 16, (one >> 8) & 255, one & 255]));
  const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
  return Buffer.concat([signature, chunk('IHDR', head), chunk('PLTE', colours), chunk('IDAT', deflateSync(raw, { level: 9 })), chunk('IEND', Buffer.alloc(0))]);
}

function nearest(palette, one) {
  const far = (a, b) => [16, 8, 0].reduce((sum, shift) => sum + (((a >> shift) & 255) - ((b >> shift) & 255)) ** 2, 0);
  return palette.reduce((best, other, place) => (far(one, other) < far(one, palette[best]) ? place : best), 0);
}

function chunk(type, body) {
  const inner = Buffer.concat([Buffer.from(type, 'latin1'), body]);
  const ends = [Buffer.alloc(4), Buffer.alloc(4)];
  ends[0].writeUInt32BE(body.length);
  ends[1].writeUInt32BE(crc32(inner));
  return Buffer.concat([ends[0], inner, ends[1]]);
}
