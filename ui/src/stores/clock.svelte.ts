/** The time in seconds, for ages and deadlines; one timer for all, and none while nobody looks at the tab. */

class Clock {
  now = $state(Date.now() / 1000);
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor() {
    const tick = () => (this.now = Date.now() / 1000);
    const run = () => {
      clearInterval(this.timer);
      if (document.hidden) return;
      tick();
      this.timer = setInterval(tick, 1000);
    };
    document.addEventListener('visibilitychange', run);
    run();
  }
}

export const clock = new Clock();
