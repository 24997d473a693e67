/** Gives an element the focus when it appears. `autofocus` does that only while nothing else has the focus. */
export function focused(element: HTMLElement): void {
  element.focus();
}
