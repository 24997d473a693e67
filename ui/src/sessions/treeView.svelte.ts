/** How the tree of sessions was looked at last: who comes back to it finds it as it was. */

import { SvelteSet } from 'svelte/reactivity';

class TreeView {
  filter = $state('');
  /** Only what wants attention. */
  attention = $state(false);
  selected = $state<string | null>(null);
  folded = new SvelteSet<string>();
}

export const treeView = new TreeView();
