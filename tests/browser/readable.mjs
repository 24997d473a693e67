// Reads a page as a person does: the text of an element that is on the screen now. Text that is scrolled out, clipped, collapsed or
// covered by another element is left out.

/** How far text may reach over the edge of what contains it, in pixels: glyphs are a little larger than their line. */
const TOLERANCE = 2;

/** The visible text of the first element that matches, in the order of the document, with single spaces between words. */
export function readable(page, selector) {
  return page.locator(selector).first().evaluate(textOnScreen, TOLERANCE);
}

/** Runs in the page. */
function textOnScreen(root, tolerance) {
  const areas = new Map([[null, { left: 0, top: 0, right: innerWidth, bottom: innerHeight }]]);
  /** The part of the screen in which the content of an element can be seen. */
  const areaOf = (element) => {
    const known = areas.get(element);
    if (known !== undefined) return known;
    const outer = areaOf(element.parentElement);
    const { overflowX, overflowY } = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    const [x, y] = [overflowX !== 'visible', overflowY !== 'visible'];
    const area = {
      left: x ? Math.max(outer.left, box.left) : outer.left,
      right: x ? Math.min(outer.right, box.right) : outer.right,
      top: y ? Math.max(outer.top, box.top) : outer.top,
      bottom: y ? Math.min(outer.bottom, box.bottom) : outer.bottom,
    };
    areas.set(element, area);
    return area;
  };
  const isInside = (box, area) =>
    box.left >= area.left - tolerance && box.right <= area.right + tolerance && box.top >= area.top - tolerance && box.bottom <= area.bottom + tolerance;
  const isOnTop = (element, box) => {
    const hit = document.elementFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
    return hit !== null && (hit.contains(element) || element.contains(hit));
  };
  const blockOf = (element) => {
    let block = element;
    while (block !== root && /^(inline$|contents)/.test(getComputedStyle(block).display)) block = block.parentElement;
    return block;
  };
  const boxes = (range) => [...range.getClientRects()].filter((box) => box.width > 0 && box.height > 0);

  let text = '';
  let last = null;
  const add = (element, piece) => {
    const block = blockOf(element);
    text += (block === last ? '' : ' ') + piece;
    last = block;
  };
  const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  for (let node = nodes.nextNode(); node !== null; node = nodes.nextNode()) {
    if (node instanceof HTMLInputElement || node instanceof HTMLTextAreaElement) {
      const box = node.getBoundingClientRect();
      if (box.width > 0 && isInside(box, areaOf(node.parentElement)) && isOnTop(node, box)) add(node, node.value);
    }
    if (node.nodeType !== Node.TEXT_NODE) continue;
    const element = node.parentElement;
    // Content of closed `details` has a box, too.
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const area = areaOf(element);
    const range = document.createRange();
    range.selectNodeContents(node);
    const all = boxes(range);
    if (all.length === 0) {
      if (node.data.trim() === '') add(element, ' ');
      continue;
    }
    const first = all.find((box) => isInside(box, area));
    if (first !== undefined && !isOnTop(element, first)) continue;
    if (all.every((box) => isInside(box, area))) {
      add(element, node.data);
      continue;
    }
    // A text of several lines, of which some are visible.
    let piece = '';
    for (let at = 0; at < node.length; at++) {
      range.setStart(node, at);
      range.setEnd(node, at + 1);
      const own = boxes(range);
      if (own.length === 0 || own.every((box) => isInside(box, area))) piece += node.data[at];
    }
    add(element, piece);
  }
  return text.replace(/\s+/g, ' ').trim();
}
