/** Where in the console one is: the part of the address after `#`, so that a view can be linked to and gone back to. */

export type Route =
  | { view: 'inbox'; approval: string | null }
  | { view: 'sessions' }
  | { view: 'session'; id: string; part: string }
  | { view: 'record'; part: string };

export function parse(hash: string): Route {
  const [view, ...rest] = hash.replace(/^#\/?/, '').split('/').map(safeDecode);
  switch (view) {
    case 'sessions':
      return { view: 'sessions' };
    case 'session':
      if (rest[0]) return { view: 'session', id: rest[0], part: rest[1] ?? 'stream' };
      return { view: 'sessions' };
    case 'record':
      return { view: 'record', part: rest[0] ?? 'decisions' };
    default:
      return { view: 'inbox', approval: rest[0] ?? null };
  }
}

export function href(route: Route): string {
  const parts: string[] = [route.view];
  if (route.view === 'inbox' && route.approval) parts.push(route.approval);
  if (route.view === 'session') parts.push(route.id, ...(route.part === 'stream' ? [] : [route.part]));
  if (route.view === 'record' && route.part !== 'decisions') parts.push(route.part);
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

  /** Goes there in place of where one is, within the same view: going back does not lead here. */
  replace(route: Route): void {
    // The reply to an answer may arrive after the person has gone to another view, and must not lead away from there.
    if (parse(location.hash).view !== route.view) return;
    history.replaceState(null, '', href(route));
    this.route = route;
  }
}

export const router = new Router();
