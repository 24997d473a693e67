// Two ways to use a page: by keyboard alone, and by touch on a narrow screen. Both have the same verbs, so that one test proves both.

/** How many times Tab is pressed before an element counts as unreachable. */
const MOST_TABS = 200;

/** By keyboard alone: no element is clicked. */
export function keyboard(page) {
  const press = (key) => page.keyboard.press(key);
  const hasFocus = (target) => target.evaluate((element) => element === document.activeElement);

  /** Moves the focus to an element with Tab. */
  async function reach(target) {
    await target.and(page.locator(':is(:enabled, a, summary, [tabindex]):not([aria-disabled=true])')).waitFor();
    for (let at = 0; at < MOST_TABS; at++) {
      if (await hasFocus(target)) return;
      await press('Tab');
    }
    throw new Error(`Tab does not reach ${target}`);
  }

  return {
    name: 'keyboard',
    async press(target) {
      await reach(target);
      await press('Enter');
    },
    async fill(target, text) {
      await reach(target);
      await press('Control+A');
      if (text === '') await press('Delete');
      else await page.keyboard.insertText(text);
    },
    /** Chooses an option of a select box by its value. */
    async choose(target, value) {
      await reach(target);
      await press('Home');
      for (let at = 0; at < 50 && (await target.inputValue()) !== value; at++) await press('ArrowDown');
      if ((await target.inputValue()) !== value) throw new Error(`the arrow keys do not reach ${value}`);
    },
    /** Turns a check box or a radio button on. */
    async check(target) {
      if (await target.isChecked()) return;
      const isRadio = (await target.getAttribute('type')) === 'radio';
      if (!isRadio) {
        await reach(target);
        await press('Space');
        return;
      }
      // Tab stops once at a group of radio buttons, and the arrow keys choose in it.
      const name = await target.getAttribute('name');
      const group = page.locator(`input[type=radio][name="${name}"]`);
      for (let at = 0; at < MOST_TABS && !(await group.evaluateAll((all) => all.includes(document.activeElement))); at++) await press('Tab');
      await press('Space');
      for (let at = 0; at < 50 && !(await target.isChecked()); at++) await press('ArrowDown');
      if (!(await target.isChecked())) throw new Error(`the arrow keys do not reach ${target}`);
    },
  };
}

/** By touch. The page must never be wider than the screen. */
export function touch(page) {
  const measure = async () => {
    for (;;) {
      try {
        return await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      } catch (error) {
        // A step may load another page meanwhile, or several: signing out does.
        if (!error.message.includes('because of a navigation')) throw error;
        await page.waitForLoadState();
      }
    }
  };
  const fits = async (target) => {
    const wider = await measure();
    if (wider > 0) throw new Error(`the page is ${wider} pixels wider than the screen, at ${target}`);
  };
  const then = (act) => async (target, value) => {
    await target.waitFor();
    await fits(target);
    await act(target, value);
    await fits(target);
  };
  return {
    name: 'touch',
    press: then((target) => target.tap()),
    fill: then((target, text) => target.fill(text)),
    choose: then((target, value) => target.selectOption(value)),
    check: then(async (target) => (await target.isChecked()) || (await target.tap())),
  };
}
