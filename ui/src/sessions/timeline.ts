/**
 * The events of a session folded into what is read of them: a call with its decision and its result is one item, what only
 * distracts is none. Pages are added at both ends in whatever order they come; an item that changes is replaced by a new
 * object, so that a view sees by identity what to draw again. Knows nothing of how events are fetched.
 */

import { object, text } from '../pure/fields';
import type { Decider, Fields, Json, SessionFrame } from '../wire';
import { systemNote } from './systemNotes';

/** An event as it was read; `truncated` where long texts in it were cut. */
export type StoredEvent = SessionFrame & { truncated?: boolean };

interface Base {
  /** Stable, and told apart from all others of the session. */
  key: string;
  turn: number;
  seq: number;
  at: number;
  /** How far it is indented: calls of a sub-agent stand below the call that is the sub-agent. */
  depth: number;
  /** It is shown cut; the event it is made of can be read whole. */
  cut: boolean;
}

export interface Decided {
  status: string;
  by: Decider;
  message?: string;
  /** The input that ran, where it is not the one that was requested. */
  updated?: Fields;
  /** The event that says so, which may be cut. */
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
  /** `null` while the call itself was not read: it stands further up. */
  tool: string | null;
  input: Fields;
  /** The approval that was asked for it last. */
  approval: string | null;
  /** How that ended; `null` while it waits. */
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

/** What is known of a call, and where it stands in the list. */
interface Known {
  /** Positions do not change when something is put before the first. */
  position: number;
  depth: number;
}

export class Timeline {
  private list: Item[] = [];
  /** The position of the first in the list. */
  private first = 0;
  private calls = new Map<string, Known>();

  /** What is to be shown now; a new array each time. */
  get items(): Item[] {
    return this.list.slice();
  }

  get length(): number {
    return this.list.length;
  }

  /** Adds what follows all that is there. */
  append(events: readonly StoredEvent[]): void {
    for (const event of events) {
      this.take(event, this.list, (at) => this.first + at);
    }
  }

  /** Adds what comes before all that is there. */
  prepend(events: readonly StoredEvent[]): void {
    const before: Item[] = [];
    // The page is folded by itself first: its length is what the positions in it depend on.
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

  /** What an earlier page tells of a call is put together with what was read of it before, at both places. */
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

  private take(read: StoredEvent, list: Item[], position: (at: number) => number): void {
    const { turn, seq, at, event } = read;
    const parent = 'parent_tool_use_id' in event ? text(event.parent_tool_use_id) : '';
    const depth = parent === '' ? 0 : (this.calls.get(`${turn}/${parent}`)?.depth ?? 0) + 1;
    const cut = read.truncated === true || ('truncated' in event && event.truncated !== undefined);
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
          list.push({ ...base, kind: 'sent', text: text(data['text']) });
          break;
        }
        const note = systemNote(text(event.subtype), data);
        if (note) list.push({ ...base, kind: 'note', ...note, data });
      }
    }
  }

  /** What is told of a call is put into its item; where that was not read, an item here stands for it. */
  private call(
    base: Base,
    id: string,
    list: Item[],
    position: (at: number) => number,
    told: Partial<Pick<Call, 'tool' | 'input' | 'approval' | 'decided' | 'result'>>,
  ): void {
    const key = `${base.turn}/${id}`;
    const known = this.calls.get(key);
    const item = known && this.at(known.position);
    // An id that is used twice is two calls.
    if (known && item?.kind === 'call' && !(told.tool !== undefined && item.tool !== null)) {
      this.put(known.position, { ...item, ...told });
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
      ...told,
      // Of what stands for a call, the result says itself whether it is cut.
      cut: told.tool !== undefined && base.cut,
    });
  }
}
