import { expect, test } from 'vitest';
import { eventPlace, href, parseQuery, parseRoute, type Route } from './route';

test('an address leads to the place it was made from', () => {
  const routes: Route[] = [
    { view: 'inbox', approval: null },
    { view: 'inbox', approval: 'a-1' },
    { view: 'sessions', part: 'list' },
    { view: 'sessions', part: 'start' },
    { view: 'activity', session: null },
    { view: 'activity', session: 's' },
    { view: 'session', id: 's', part: 'stream' },
    { view: 'session', id: 's', part: 'stream', at: '3-17' },
    { view: 'session', id: 's', part: 'diff', at: 'src/a b?#/ü%.ts' },
    { view: 'audit', part: 'log' },
    { view: 'audit', part: 'log', at: '120' },
    { view: 'audit', part: 'rules' },
  ];
  for (const route of routes) {
    expect(parseRoute(href(route))).toEqual(route);
    const query = { q: 'a&b=c ?', kind: 'gate' };
    expect(parseRoute(href(route, query))).toEqual(route);
    expect(parseQuery(href(route, query))).toEqual(query);
  }
});

test('what is not filtered is not in the address', () => {
  expect(href({ view: 'inbox', approval: null }, { q: '' })).toBe('#/inbox');
  expect(parseQuery('#/inbox?q=&kind=gate')).toEqual({ kind: 'gate' });
  expect(parseQuery('#/inbox')).toEqual({});
});

test('an unknown address leads to the inbox, and broken escapes are kept as they are', () => {
  for (const hash of ['', '#', '#/', '#/none', '#/session']) expect(parseRoute(hash).view).toMatch(/inbox|sessions/);
  expect(parseRoute('#/inbox/%zz')).toEqual({ view: 'inbox', approval: '%zz' });
  expect(parseRoute('#/record')).toEqual({ view: 'audit', part: 'log' });
});

test('a place in a session is a turn or an event', () => {
  expect(eventPlace('3')).toEqual({ turn: 3, seq: null });
  expect(eventPlace('3-17')).toEqual({ turn: 3, seq: 17 });
  for (const wrong of ['', 'x', '3-', '-3', '3-17-1', '1e9', '9'.repeat(30)]) expect(eventPlace(wrong)).toBeNull();
});
