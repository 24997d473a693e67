/** The current view, kept in the part of the address after `#`, so that links and the back button work. */

export type Route =
  | { view: 'inbox'; approval: string | null }
  | { view: 'sessions'; part: 'list' | 'start' }
  | { view: 'activity'; session: string | null }
  | { view: 'session'; id: string; part: string }
  | { view: 'audit'; part: string };

export function parse(hash: string): Route {
  const [view, ...rest] = hash.replace(/^#\/?/, '').split('/').map(safeDecode);
  switch (view) {
    case 'sessions':
      return { view: 'sessions', part: rest[0] === 'start' ? 'start' : 'list' };
    case 'session':
      if (rest[0]) return { view: 'session', id: rest[0], part: rest[1] ?? 'stream' };
      return { view: 'sessions', part: 'list' };
    case 'activity':
      return { view: 'activity', session: rest[0] ?? null };
    case 'record': // The earlier name, in saved links.
    case 'audit':
      return { view: 'audit', part: rest[0] ?? 'log' };
    default:
      return { view: 'inbox', approval: rest[0] ?? null };
  }
}

export function href(route: Route): string {
  const parts: string[] = [route.view];
  if (route.view === 'inbox' && route.approval) parts.push(route.approval);
  if (route.view === 'session') parts.push(route.id, ...(route.part === 'stream' ? [] : [route.part]));
  if (route.view === 'sessions' && route.part !== 'list') parts.push(route.part);
  if (route.view === 'activity' && route.session) parts.push(route.session);
  if (route.view === 'audit' && route.part !== 'log') parts.push(route.part);
  return `#/${parts.map(encodeURIComponent).join('/')}`;
}

function safeDecode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

class Router {
  route = $state<Route>(parse(location.hash));

  constructor() {
    addEventListener('hashchange', () => (this.route = parse(location.hash)));
  }

  go(route: Route): void {
    location.hash = href(route);
  }

  /** Replaces the current address within the same view, without a new history entry. */
  replace(route: Route): void {
    // The response to an answer may arrive after the person went to another view. It must not navigate away from there.
    if (parse(location.hash).view !== route.view) return;
    history.replaceState(null, '', href(route));
    this.route = route;
  }
}

export const router = new Router();
