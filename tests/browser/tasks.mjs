// Measures how long a page keeps its main thread busy. It counts the CPU time of each task and not the time on the clock, so other
// programs on the machine do not change the result: a thread that waits for a core uses no CPU time.
import { randomUUID } from 'node:crypto';

/** The tasks of the page's main thread while `act` runs: their CPU time in milliseconds, longest first. */
export async function tasks(page, act) {
  return (await traced(page, act)).map((task) => task.cpu).sort((a, b) => b - a);
}

/** The tasks of the page's main thread while `act` runs: their CPU time and their time on the clock, in milliseconds. */
export async function traced(page, act) {
  const session = await page.context().newCDPSession(page);
  const events = [];
  session.on('Tracing.dataCollected', ({ value }) => events.push(...value));
  const includedCategories = ['toplevel', 'blink.user_timing'];
  await session.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { excludedCategories: ['*'], includedCategories } });
  // The mark identifies the process and the thread of this page: the trace contains those of other pages, too.
  const mark = `plexus-${randomUUID()}`;
  await page.evaluate((name) => void performance.mark(name), mark);
  try {
    await act();
  } finally {
    const complete = new Promise((done) => session.once('Tracing.tracingComplete', done));
    await session.send('Tracing.end');
    await complete;
    await session.detach();
  }
  const here = events.find((event) => event.name === mark);
  if (here === undefined) throw new Error('the trace does not contain the mark of the page');
  // The task that ends the trace is not complete.
  const own = events.filter((event) => event.pid === here.pid && event.tid === here.tid && event.ph === 'X' && /RunTask$/.test(event.name));
  if (!own.some((event) => event.tdur > 0)) throw new Error('the trace has no CPU times');
  // The trace omits a time of zero.
  return own.map(({ tdur = 0, dur = 0 }) => ({ cpu: tdur / 1000, clock: dur / 1000 }));
}
