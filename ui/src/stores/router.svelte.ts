/** The current view, kept in the part of the address after `#`, so that links and the back button work. */

import { untrack } from 'svelte';
import { compact, href, parseQuery, parseRoute, type Query, type Route } from '../pure/route';

export { href, parseRoute as parse, type Query, type Route } from '../pure/route';

class Router {
  route = $state<Route>(parseRoute(location.hash));
  /** The filters of the view. */
  query = $state.raw<Query>(parseQuery(location.hash));

  constructor() {
    addEventListener('hashchange', () => {
      this.route = parseRoute(location.hash);
      this.query = parseQuery(location.hash);
    });
  }

  go(route: Route, query: Query = {}): void {
    location.hash = href(route, query);
  }

  /** Replaces the current address within the same view, without a new history entry. Its filters stay. */
  replace(route: Route): void {
    // The response to an answer may arrive after the person went to another view. It must not navigate away from there.
    if (parseRoute(location.hash).view !== route.view) return;
    history.replaceState(null, '', href(route, this.query));
    this.route = route;
  }

  /** Replaces the filters in the address. */
  setQuery(query: Query): void {
    const wanted = compact(query);
    if (isSame(wanted, this.query)) return;
    history.replaceState(null, '', href(parseRoute(location.hash), wanted));
    this.query = wanted;
  }
}

const isSame = (a: Query, b: Query) =>
  JSON.stringify(Object.entries(a).toSorted()) === JSON.stringify(Object.entries(b).toSorted());

export const router = new Router();

/**
 * Keeps the filters of a view in the address while the view is shown. An address with filters replaces those of the view; one without
 * filters leaves them as they are.
 */
export function filtersInAddress(read: (query: Query) => void, write: () => Query): void {
  $effect(() => {
    const query = router.query;
    untrack(() => {
      if (Object.keys(query).length > 0 && !isSame(query, compact(write()))) read(query);
    });
  });
  $effect(() => {
    const query = write();
    untrack(() => router.setQuery(query));
  });
}
