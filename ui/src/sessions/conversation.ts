/** A conversation tree as rows: one for each turn, with forks to the right. Nodes are added page by page. */

import type { NodeSummary, TreeSession } from '../wire';

/** The part of a node that is shown. */
export type Node = Pick<NodeSummary, 'id' | 'parent_id' | 'role' | 'session_id' | 'turn' | 'preview' | 'created_at'>;

export interface Turn {
  key: string;
  session: string | null;
  turn: number;
  /** The beginnings of its prompt and of its last message. */
  prompt: string;
  said: string;
  /** The outcome; null while the turn runs. */
  outcome: string | null;
  nodes: number;
  at: number;
}

export interface Row {
  turn: Turn;
  /** The column, from 0. */
  lane: number;
  /** For each lane to the left: whether it continues below. */
  through: boolean[];
  /** Whether the lane has a row above, and below. */
  above: boolean;
  below: boolean;
  /** The sessions whose head is in this turn. */
  heads: TreeSession[];
}

interface Group extends Turn {
  children: Group[];
}

export class Conversation {
  private groups: Group[] = [];
  private of = new Map<string, Group>();
  last: string | null = null;
  count = 0;

  /** Adds nodes in the order of the tree: a parent before its children. */
  add(nodes: readonly Node[]): void {
    for (const node of nodes) {
      this.last = node.id;
      if (this.of.has(node.id)) continue;
      this.count += 1;
      const parent = node.parent_id === undefined ? undefined : this.of.get(node.parent_id);
      const same =
        parent !== undefined &&
        (node.session_id === undefined || (parent.session === node.session_id && parent.turn === (node.turn ?? 0)));
      const group = same ? parent : this.open(node, parent);
      this.of.set(node.id, group);
      group.nodes += 1;
      if (node.role === 'user' && group.prompt === '') group.prompt = node.preview;
      if (node.role === 'assistant') group.said = node.preview;
      if (node.role === 'outcome') group.outcome = node.preview;
    }
  }

  private open(node: Node, parent: Group | undefined): Group {
    const group: Group = {
      key: node.id,
      session: node.session_id ?? null,
      turn: node.turn ?? 0,
      prompt: '',
      said: '',
      outcome: null,
      nodes: 0,
      at: node.created_at,
      children: [],
    };
    if (parent) parent.children.push(group);
    else this.groups.push(group);
    return group;
  }

  rows(speakers: readonly TreeSession[]): Row[] {
    const heads = new Map<Group, TreeSession[]>();
    for (const speaker of speakers) {
      const group = this.of.get(speaker.head);
      if (!group) continue;
      const list = heads.get(group);
      if (list) list.push(speaker);
      else heads.set(group, [speaker]);
    }
    const rows: Row[] = [];
    const stack: { group: Group; lane: number; through: boolean[]; above: boolean }[] = [];
    for (const group of this.groups.toReversed()) stack.push({ group, lane: 0, through: [], above: false });
    for (let top = stack.pop(); top; top = stack.pop()) {
      const { group, lane, through, above } = top;
      const { children, ...turn } = group;
      const continuation = children.find((child) => child.session === group.session) ?? children[0];
      rows.push({ turn, lane, through, above, below: continuation !== undefined, heads: heads.get(group) ?? [] });
      // The continuation is shown after all forks, so it is pushed first.
      if (continuation) stack.push({ group: continuation, lane, through, above: true });
      for (const child of children.toReversed()) {
        if (child !== continuation)
          stack.push({ group: child, lane: lane + 1, through: [...through, true], above: false });
      }
    }
    return rows;
  }
}
