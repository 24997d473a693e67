/** The current time in seconds, for ages and deadlines. One timer serves all views, and it stops while the tab is hidden. */

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
