// Drives Chromium for the tests of the web console. It owns one browser with a separate context per test. It reads one request per
// line from stdin: `open` a context, `run` code in it, `close` it. The tests decide what to do and to check. The driver and the
// browser exit when stdin is closed.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import * as hands from './hands.mjs';
import { picture } from './picture.mjs';
import { readable } from './readable.mjs';
import { tasks } from './tasks.mjs';

const [modules, executablePath] = process.argv.slice(2);
const require = createRequire(join(modules, 'here.js'));
const { chromium } = require('playwright-core');
const axe = () => readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** The time limit of every wait, in milliseconds. */
const LIMIT = 30_000;

const home = mkdtempSync(join(tmpdir(), 'plexus-browser-'));
const launch = {
  executablePath,
  chromiumSandbox: process.getuid() !== 0,
  env: { PATH: process.env.PATH, HOME: home, TMPDIR: home },
  args: ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-proxy-server'],
};
const browser = await chromium.launch(launch);

/** A browser context. It records faults of its pages where the pages cannot change them. */
class Window {
  faults = [];
  pages = [];

  /** With a `profile` it is a separate browser that stores its data in that directory. */
  static async open({ origins, options = {}, profile = null }) {
    const opened = new Window();
    const wanted = { viewport: { width: 1280, height: 800 }, ...options };
    opened.context = profile === null ? await browser.newContext(wanted) : await chromium.launchPersistentContext(profile, { ...launch, ...wanted });
    opened.context.setDefaultTimeout(LIMIT);
    await opened.context.exposeBinding('__violated', (_, what) => opened.faults.push(`against the policy: ${what}`));
    await opened.context.addInitScript(() => {
      addEventListener('securitypolicyviolation', (event) => window.__violated(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
      window.__tasks = [];
      new PerformanceObserver((list) => window.__tasks.push(...list.getEntries().map((task) => Math.round(task.duration)))).observe({ type: 'longtask', buffered: true });
    });
    opened.context.on('request', (request) => {
      const url = new URL(request.url());
      if (!origins.includes(url.origin) && !['about:', 'data:', 'blob:'].includes(url.protocol)) opened.faults.push(`asked ${request.url()}`);
    });
    opened.context.on('page', (page) => opened.watch(page));
    if (opened.context.pages().length === 0) await opened.context.newPage();
    else opened.context.pages().forEach((page) => opened.watch(page));
    return opened;
  }

  watch(page) {
    this.pages.push(page);
    page.on('pageerror', (error) => this.faults.push(`error in the page: ${error.stack ?? error}`));
    page.on('dialog', (dialog) => {
      this.faults.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
  }

  async run({ code, args, page: number = 0 }) {
    const page = this.pages[number];
    const scope = { page, context: this.context, pages: this.pages, args, axe, hands, picture, readable, tasks };
    const body = new Function(...Object.keys(scope), `return (async () => { ${code}\n })()`);
    try {
      return (await body(...Object.values(scope))) ?? null;
    } catch (error) {
      // The text of the page explains the failure better than the wait that failed.
      const shown = await page.locator('body').innerText({ timeout: 1000 }).catch(() => '');
      throw new Error(`${error.message}\nat ${page.url()}\nwhich shows:\n${shown.slice(0, 3000)}\nfaults: ${this.faults.join('\n')}`);
    }
  }

  async close() {
    await this.context.close();
    return this.faults;
  }
}

const windows = new Map();

async function answer({ op, window, ...request }) {
  if (op === 'open') {
    windows.set(window, await Window.open(request));
    return null;
  }
  const opened = windows.get(window);
  if (op === 'run') return opened.run(request);
  windows.delete(window);
  return opened.close();
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, ...request } = JSON.parse(line);
  answer(request).then(
    (ok) => console.log(JSON.stringify({ id, ok })),
    (error) => console.log(JSON.stringify({ id, error: String(error?.message ?? error) })),
  );
}
await browser.close();
rmSync(home, { recursive: true, force: true });
