// Loads pages of the console in Chromium and prints one JSON line per load. It signs in with a link, and then reloads each page with an empty
// HTTP cache: once for its times and its traffic, and once with a trace of the main thread, because tracing costs time.
// Argument: {"modules": path, "chromium": path, "link": url, "rounds": number, "pages": [PAGE]}, where a
// PAGE is {"name": text, "hash": text, "element": selector, "shows": text} and is complete when the element contains the text.
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { traced } from '../../tests/browser/tasks.mjs';

const { modules, chromium: executablePath, link, rounds, pages } = JSON.parse(process.argv[2]);
const { chromium } = createRequire(join(modules, 'here.js'))('playwright-core');

/** The time limit of every wait, in milliseconds. */
const LIMIT = 30_000;
/** How long after its content is shown a page is still measured, in milliseconds. */
const AFTERWARDS = 1_000;

/** Counts the bytes that the page receives: complete responses with their headers, and the part of open streams that has arrived. */
async function traffic(page) {
  const session = await page.context().newCDPSession(page);
  const received = new Map();
  const add = (id, bytes) => received.set(id, (received.get(id) ?? 0) + bytes);
  session.on('Network.dataReceived', ({ requestId, encodedDataLength }) => add(requestId, encodedDataLength));
  session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => received.set(requestId, encodedDataLength));
  await session.send('Network.enable');
  return {
    emptyCache: () => session.send('Network.clearBrowserCache'),
    start: () => received.clear(),
    total: () => [...received.values()].reduce((sum, bytes) => sum + bytes, 0),
  };
}

/** Reloads the page, and returns the time at which it shows its content. The time starts with the navigation. */
async function load(page, { element, shows }) {
  await page.reload({ waitUntil: 'commit' });
  const shown = await page.waitForFunction(
    ([element, shows]) => (document.querySelector(element)?.innerText.includes(shows) ? performance.now() : null),
    [element, shows],
    { polling: 'raf' },
  );
  const time = await shown.jsonValue();
  // Late tasks and responses count, too.
  await page.waitForTimeout(AFTERWARDS);
  return time;
}

async function measure(page, network, wanted) {
  await page.evaluate((to) => { location.hash = to; }, wanted.hash);
  await network.emptyCache();
  network.start();
  const content = await load(page, wanted);
  const bytes = network.total();
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null);
  await network.emptyCache();
  const tasks = await traced(page, () => load(page, wanted));
  const longest = (kind) => Math.max(...tasks.map((task) => task[kind]));
  return { page: wanted.name, paint, content, bytes, clock: longest('clock'), cpu: longest('cpu') };
}

const home = mkdtempSync(join(tmpdir(), 'plexus-bench-browser-'));
const browser = await chromium.launch({
  executablePath,
  chromiumSandbox: process.getuid() !== 0,
  env: { PATH: process.env.PATH, HOME: home, TMPDIR: home },
  args: ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-proxy-server'],
});
try {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce', locale: 'en-GB', timezoneId: 'UTC' });
  context.setDefaultTimeout(LIMIT);
  const page = await context.newPage();
  await page.goto(link);
  await page.locator('[data-state=live]').waitFor();
  const network = await traffic(page);
  console.log(JSON.stringify({ chromium: browser.version() }));
  for (let round = 0; round < rounds; round++) {
    for (const one of pages) {
      const measured = await measure(page, network, one).catch(async (error) => {
        // The text of the page explains the failure better than the wait that failed.
        const text = await page.locator('body').innerText({ timeout: 1000 }).catch(() => '');
        throw new Error(`${one.name}: ${error.message}\n${page.url()} shows:\n${text.slice(0, 1000)}`);
      });
      console.log(JSON.stringify(measured));
    }
  }
} finally {
  await browser.close();
  rmSync(home, { recursive: true, force: true });
}
