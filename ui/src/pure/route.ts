/** Addresses of the console: the part after `#`, as a view with its parts and the filters of the view. */

export type Route =
  | { view: 'inbox'; approval: string | null }
  | { view: 'sessions'; part: 'list' | 'start' }
  | { view: 'activity'; session: string | null }
  /** `at` is a turn (`3`) or an event (`3-17`) of the timeline, or the path of a changed file. */
  | { view: 'session'; id: string; part: string; at?: string }
  /** `at` is the number of an entry. */
  | { view: 'audit'; part: string; at?: string };

/** Filters and settings of a view, by name. None is empty. */
export type Query = Readonly<Record<string, string>>;

export function parseRoute(hash: string): Route {
  const [path = ''] = hash.replace(/^#\/?/, '').split('?', 1);
  const [view, ...rest] = path.split('/').map(decoded);
  const at = (text: string | undefined) => (text === undefined || text === '' ? {} : { at: text });
  switch (view) {
    case 'sessions':
      return { view: 'sessions', part: rest[0] === 'start' ? 'start' : 'list' };
    case 'session':
      if (rest[0]) return { view: 'session', id: rest[0], part: rest[1] ?? 'stream', ...at(rest[2]) };
      return { view: 'sessions', part: 'list' };
    case 'activity':
      return { view: 'activity', session: rest[0] ?? null };
    case 'record': // The earlier name, in saved links.
    case 'audit':
      return { view: 'audit', part: rest[0] ?? 'log', ...at(rest[1]) };
    default:
      return { view: 'inbox', approval: rest[0] ?? null };
  }
}

export function parseQuery(hash: string): Query {
  const at = hash.indexOf('?');
  if (at === -1) return {};
  return compact(Object.fromEntries(new URLSearchParams(hash.slice(at + 1))));
}

/** Without empty values. */
export function compact(query: Query): Query {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ''));
}

export function href(route: Route, query: Query = {}): string {
  const parts: string[] = [route.view];
  const isDefault = (part: string, at: string | undefined, first: string) => part === first && at === undefined;
  if (route.view === 'inbox' && route.approval) parts.push(route.approval);
  if (route.view === 'session') {
    parts.push(route.id, ...(isDefault(route.part, route.at, 'stream') ? [] : [route.part]));
    if (route.at !== undefined) parts.push(route.at);
  }
  if (route.view === 'sessions' && route.part !== 'list') parts.push(route.part);
  if (route.view === 'activity' && route.session) parts.push(route.session);
  if (route.view === 'audit') {
    parts.push(...(isDefault(route.part, route.at, 'log') ? [] : [route.part]));
    if (route.at !== undefined) parts.push(route.at);
  }
  const filters = new URLSearchParams(compact(query)).toString();
  return `#/${parts.map(encodeURIComponent).join('/')}${filters === '' ? '' : `?${filters}`}`;
}

/** A turn of a session, or an event in it. */
export interface EventPlace {
  turn: number;
  seq: number | null;
}

/** The turn and the event that an address names; `null` if it names none. */
export function eventPlace(at: string): EventPlace | null {
  const found = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(at);
  return found === null ? null : { turn: Number(found[1]), seq: found[2] === undefined ? null : Number(found[2]) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
