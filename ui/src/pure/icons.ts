/** The icons of the console, as paths on a grid of 16 by 16, drawn with a line of 1.4. They are decoration: each stands beside a text. */

const PATHS = {
  agent: 'M4 6.5h8v6H4zM8 6.5V3.5M6.5 9.3v.4M9.5 9.3v.4M2 8.5v2.5M14 8.5v2.5M8 3.4v.2',
  archive: 'M2.5 3.5h11v3h-11zM3.5 6.5v6.5h9V6.5M6.5 9h3',
  ask: 'M3 3.5h10v7H8l-3 2.5v-2.5H3z',
  bell: 'M4.5 11V7.5a3.5 3.5 0 0 1 7 0V11l1 1.3h-9zM7 13.8h2',
  branch:
    'M5 4.8v6.4M5 4.8a1.4 1.4 0 1 0 0-2.8 1.4 1.4 0 0 0 0 2.8zM5 14a1.4 1.4 0 1 0 0-2.8A1.4 1.4 0 0 0 5 14zM11 6.8A1.4 1.4 0 1 0 11 4a1.4 1.4 0 0 0 0 2.8zM11 6.8c0 2.2-2 2.4-6 2.9',
  budget: 'M2.5 4.5h11v8h-11zM2.5 7h11M5 10h2',
  check: 'M3 8.5 6.5 12 13 4.5',
  clock: 'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM8 5v3.2L10 9.6',
  command: 'M2.5 3.5h11v9h-11zM5 6.5 7 8l-2 1.6M8.2 9.8h2.8',
  comment: 'M3 3.5h10v7H8l-3 2.5v-2.5H3zM5.5 6h5M5.5 8h3',
  copy: 'M5.5 5.5h7v8h-7zM3.5 10.5v-8h7',
  create: 'M4 2.5h5l3 3v8H4zM8 7v4M6 9h4',
  cross: 'M4 4l8 8M12 4l-8 8',
  down: 'M4 6l4 4.5L12 6',
  download: 'M8 2.5v7M5 7l3 3 3-3M3 13h10',
  edit: 'M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3zM9 4.7 11.3 7',
  eye: 'M1.8 8S4 4 8 4s6.2 4 6.2 4S12 12 8 12 1.8 8 1.8 8zM8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6z',
  file: 'M4 2.5h5l3 3v8H4zM9 2.5v3h3',
  folder: 'M2.5 4h4l1.3 1.5h5.7v7h-11z',
  gauge: 'M3 12a6 6 0 1 1 10 0M8 9.5l2.5-3',
  inbox: 'M2.5 9 4.5 3.5h7l2 5.5v4h-11zM2.5 9h3.2l1 1.6h2.6l1-1.6h3.2',
  link: 'M6.5 9.5l3-3M7 5l1.5-1.5a2.5 2.5 0 0 1 3.9 3.4L11 8.4M9 11l-1.5 1.5a2.5 2.5 0 0 1-3.9-3.4L5 7.6',
  lock: 'M4 7.5h8v5.5H4zM5.5 7.5V5.6a2.5 2.5 0 0 1 5 0v1.9',
  merge:
    'M5 4.8v6.4M5 4.8a1.4 1.4 0 1 0 0-2.8 1.4 1.4 0 0 0 0 2.8zM5 14a1.4 1.4 0 1 0 0-2.8A1.4 1.4 0 0 0 5 14zM11.5 10.2a1.4 1.4 0 1 0 0-2.8 1.4 1.4 0 0 0 0 2.8zM5 4.8c.3 2.6 2.6 4 5.1 4',
  minus: 'M3 8h10',
  more: 'M3.5 8h.1M8 8h.1M12.5 8h.1',
  network: 'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM2.5 8h11M8 2.5c-3.3 3.4-3.3 7.6 0 11 3.3-3.4 3.3-7.6 0-11z',
  next: 'M6 4l4.5 4L6 12',
  pause: 'M5.5 4v8M10.5 4v8',
  person: 'M8 8.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 13.5a5 5 0 0 1 10 0',
  plan: 'M3 3.5h1M6 3.5h7M3 8h1M6 8h7M3 12.5h1M6 12.5h7',
  play: 'M5 3.5v9l7.5-4.5z',
  plus: 'M8 3v10M3 8h10',
  question: 'M5.7 6a2.3 2.3 0 1 1 3.5 2c-.8.5-1.2.9-1.2 1.9M8 12.4v.1',
  record: 'M4 2.5h8v11H4zM6 5.5h4M6 8h4M6 10.5h2.5',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.4 10.4l3.1 3.1',
  send: 'M2.5 8 13.5 3l-3 10.5L7.6 9zM7.6 9l2.6-2.6',
  server: 'M3 3h10v4H3zM3 9h10v4H3zM5.3 5h.1M5.3 11h.1',
  sessions: 'M4 3.5h8v3H4zM2.5 10h4v3h-4zM9.5 10h4v3h-4zM8 6.5v1.7M4.5 10V8.2h7V10',
  shield: 'M8 2.3 13 4v4c0 3-2.2 4.9-5 5.9C5.2 12.9 3 11 3 8V4z',
  stop: 'M4.5 4.5h7v7h-7z',
  time: 'M2.5 4.5h5M2.5 8h8M6 11.5h7.5',
  tool: 'M10.2 2.8a3.2 3.2 0 0 0-3 4.4L2.8 11.6l1.6 1.6 4.4-4.4a3.2 3.2 0 0 0 4.2-4L11 6.6 9.4 5z',
  trash: 'M3 4.5h10M6 4.5V3h4v1.5M4.3 4.5l.6 8.5h6.2l.6-8.5',
  undo: 'M5.5 3 2.8 5.7l2.7 2.7M3 5.7h6a3.8 3.8 0 0 1 0 7.6H6',
  warning: 'M8 2.5 14 13H2zM8 6.5v3M8 11.2v.1',
} as const;

export type IconName = keyof typeof PATHS;

/** The path of an icon. */
export function iconPath(name: IconName): string {
  return PATHS[name];
}
