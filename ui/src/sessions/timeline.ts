/**
 * The timeline of a session, built from its events: a call, its decision and its result are one item, and minor events have none. Pages
 * are added at both ends in any order. An item that changes is replaced by a new object, so that a view can compare by identity.
 * Loading the events is left to `eventPages`.
 */

import { object, text } from '../pure/fields';
import type { EventPlace } from '../pure/route';
import type { Decider, Fields, Json, SessionFrame } from '../wire';
import { fileLines } from './promptText';
import { systemNote } from './systemNotes';

/** An event of the store; `truncated` if long texts in it were cut. */
export type StoredEvent = SessionFrame & { truncated?: boolean };

interface Base {
  /** Stable, and unique in the session. */
  key: string;
  turn: number;
  seq: number;
  at: number;
  /** The indentation: items of a sub-agent are below the call that started it. */
  depth: number;
  /** Whether it is truncated; the whole event can be loaded. */
  cut: boolean;
}

export interface Decided {
  status: string;
  by: Decider;
  message?: string;
  /** The input that ran, if it differs from the requested one. */
  updated?: Fields;
  /** The event of the decision, which may be truncated. */
  seq: number;
  cut: boolean;
}

export interface Result {
  seq: number;
  at: number;
  output: Json;
  error: boolean;
  cut: boolean;
}

export interface Call extends Base {
  kind: 'call';
  id: string;
  /** `null` while the call itself is not loaded: it is further up. */
  tool: string | null;
  input: Fields;
  /** The latest approval of the call. */
  approval: string | null;
  /** How the approval was resolved; `null` while it is open. */
  decided: Decided | null;
  result: Result | null;
}

export type Item =
  | (Base & { kind: 'start'; node: string | null; origin: string | null })
  | (Base & { kind: 'text' | 'thinking' | 'sent'; text: string })
  | Call
  | (Base & { kind: 'end'; cost: number; calls: number; usage: Fields; result: string })
  | (Base & { kind: 'error'; message: string; reason: string | null; stderr: string[] })
  | (Base & { kind: 'note'; words: string; trouble: boolean; data: Fields });

/** The item that shows an event: its own, or the last one before it in its turn. For a turn, its first item. */
export function itemAt(items: readonly Item[], { turn, seq }: EventPlace): Item | null {
  const own = items.filter((item) => item.turn === turn);
  return (seq === null ? own[0] : own.findLast((item) => item.seq <= seq)) ?? null;
}

/** The item of a call. */
interface CallItem {
  /** Its position, which does not change when items are added before the first. */
  position: number;
  depth: number;
}

export class Timeline {
  private list: Item[] = [];
  /** The position of the first item. */
  private first = 0;
  private calls = new Map<string, CallItem>();

  /** The items; a new array each time. */
  get items(): Item[] {
    return this.list.slice();
  }

  get length(): number {
    return this.list.length;
  }

  /** Adds events after all others. */
  append(events: readonly StoredEvent[]): void {
    for (const event of events) {
      this.take(event, this.list, (at) => this.first + at);
    }
  }

  /** Adds events before all others. */
  prepend(events: readonly StoredEvent[]): void {
    const before: Item[] = [];
    // The page is built separately first, because its positions depend on its length.
    const own = new Timeline();
    own.append(events);
    for (const item of own.list) before.push(item);
    this.first -= before.length;
    this.list = before.concat(this.list);
    for (const [key, known] of own.calls) {
      const position = this.first + known.position;
      const later = this.calls.get(key);
      this.calls.set(key, { position, depth: known.depth });
      if (later) this.join(position, later.position);
    }
  }

  /** Merges two items of the same call from different pages, at both positions. */
  private join(early: number, late: number): void {
    const one = this.at(early);
    const other = this.at(late);
    if (one?.kind !== 'call' || other?.kind !== 'call') return;
    const whole = {
      id: one.id,
      tool: one.tool ?? other.tool,
      input: one.tool === null ? other.input : one.input,
      approval: other.approval ?? one.approval,
      decided: other.decided ?? one.decided,
      result: other.result ?? one.result,
    };
    this.put(early, { ...one, ...whole });
    this.put(late, { ...other, ...whole });
  }

  private at(position: number): Item | undefined {
    return this.list[position - this.first];
  }

  private put(position: number, item: Item): void {
    this.list[position - this.first] = item;
  }

  private take(stored: StoredEvent, list: Item[], position: (at: number) => number): void {
    const { turn, seq, at, event } = stored;
    const parent = 'parent_tool_use_id' in event ? text(event.parent_tool_use_id) : '';
    const depth = parent === '' ? 0 : (this.calls.get(`${turn}/${parent}`)?.depth ?? 0) + 1;
    const cut = stored.truncated === true || ('truncated' in event && event.truncated !== undefined);
    const base: Base = { key: `${turn}-${seq}`, turn, seq, at, depth, cut };
    switch (event.type) {
      case 'start':
        list.push({
          ...base,
          kind: 'start',
          node: text(object(event.user_position)['node_id']) || null,
          origin: text(event.origin) || null,
        });
        break;
      case 'content':
      case 'thinking':
        if (text(event.text).trim() === '') break;
        list.push({ ...base, kind: event.type === 'content' ? 'text' : 'thinking', text: text(event.text) });
        break;
      case 'tool_use':
        this.call(base, text(event.tool_use_id), list, position, {
          tool: text(event.tool_name),
          input: object(event.input),
        });
        break;
      case 'approval_requested':
        this.call(base, text(event.tool_use_id), list, position, {
          approval: text(event.approval_id),
          decided: null,
        });
        break;
      case 'approval_resolved':
        this.call(base, text(event.tool_use_id), list, position, {
          approval: text(event.approval_id),
          decided: {
            status: text(event.status),
            by: object(event.by) as Decider,
            ...(event.message === undefined ? {} : { message: text(event.message) }),
            ...(event.updated_input === undefined ? {} : { updated: object(event.updated_input) }),
            seq,
            cut,
          },
        });
        break;
      case 'tool_result':
        this.call(base, text(event.tool_use_id), list, position, {
          result: { seq, at, output: event.output ?? '', error: event.is_error === true, cut },
        });
        break;
      case 'complete':
        list.push({
          ...base,
          kind: 'end',
          cost: Number(event.cost_usd ?? 0),
          calls: Number(event.num_turns ?? 0),
          usage: object(event.usage),
          result: text(event.result),
        });
        break;
      case 'error':
        list.push({
          ...base,
          kind: 'error',
          message: text(event.message),
          reason: text(event.reason) || null,
          stderr: Array.isArray(event.stderr) ? event.stderr.map(text) : [],
        });
        break;
      case 'system': {
        const data = object(event.data);
        if (event.subtype === 'sent') {
          list.push({
            ...base,
            kind: 'sent',
            text: [text(data['text']), ...fileLines(data['attachments'])].join('\n'),
          });
          break;
        }
        const note = systemNote(text(event.subtype), data);
        if (note) list.push({ ...base, kind: 'note', ...note, data });
      }
    }
  }

  /** Updates the item of a call. If the call is not loaded, a new item stands for it. */
  private call(
    base: Base,
    id: string,
    list: Item[],
    position: (at: number) => number,
    change: Partial<Pick<Call, 'tool' | 'input' | 'approval' | 'decided' | 'result'>>,
  ): void {
    const key = `${base.turn}/${id}`;
    const known = this.calls.get(key);
    const item = known && this.at(known.position);
    // An id that is used twice names two calls.
    if (known && item?.kind === 'call' && !(change.tool !== undefined && item.tool !== null)) {
      this.put(known.position, { ...item, ...change });
      return;
    }
    this.calls.set(key, { position: position(list.length), depth: base.depth });
    list.push({
      ...base,
      kind: 'call',
      id,
      tool: null,
      input: {},
      approval: null,
      decided: null,
      result: null,
      ...change,
      // An item that stands for a call is not truncated itself; its result may be.
      cut: change.tool !== undefined && base.cut,
    });
  }
}
