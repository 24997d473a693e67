/** Whether the search over everything (Ctrl-K) is open. */

class Palette {
  open = $state(false);

  /** Opens it on Ctrl-K or ⌘K, from anywhere but a dialog. */
  press(event: KeyboardEvent): void {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 'k' || event.altKey) return;
    event.preventDefault();
    if (event.target instanceof Element && event.target.closest('dialog') && !this.open) return;
    this.open = !this.open;
  }
}

export const palette = new Palette();
