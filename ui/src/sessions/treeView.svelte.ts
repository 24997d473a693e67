/** The filter, selection and collapsed rows of the session tree, kept while other views are open. */

import { SvelteSet } from 'svelte/reactivity';

class TreeView {
  filter = $state('');
  /** Only sessions that need attention. */
  attention = $state(false);
  /** Whether the finished sessions are listed. */
  finished = $state(true);
  /** Whether the archived sessions are shown instead of the others. */
  archived = $state(false);
  selected = $state<string | null>(null);
  folded = new SvelteSet<string>();
}

export const treeView = new TreeView();
