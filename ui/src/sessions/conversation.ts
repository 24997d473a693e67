/** A conversation tree as rows: one for each turn, forks to the right of what they were forked from. Nodes are added as they are read. */

import type { NodeSummary, TreeSession } from '../wire';

/** The part of a node that is shown. */
export type Node = Pick<NodeSummary, 'id' | 'parent_id' | 'role' | 'session_id' | 'turn' | 'preview' | 'created_at'>;

export interface Turn {
  key: string;
  session: string | null;
  turn: number;
  /** How its prompt begins, and what was said last. */
  prompt: string;
  said: string;
  /** How it ended, if it has. */
  outcome: string | null;
  nodes: number;
  at: number;
}

export interface Row {
  turn: Turn;
  /** How far to the right. */
  lane: number;
  /** Of each lane to the left: whether it goes on further down. */
  through: boolean[];
  /** Something of its own lane comes before it, or after it. */
  above: boolean;
  below: boolean;
  /** Those whose conversation stands here. */
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

  /** Adds nodes in the order in which they were added to the tree: what one follows came before it. */
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
      const goesOn = children.find((child) => child.session === group.session) ?? children[0];
      rows.push({ turn, lane, through, above, below: goesOn !== undefined, heads: heads.get(group) ?? [] });
      // What goes on comes after all forks, so it lies deepest in the stack.
      if (goesOn) stack.push({ group: goesOn, lane, through, above: true });
      for (const child of children.toReversed()) {
        if (child !== goesOn) stack.push({ group: child, lane: lane + 1, through: [...through, true], above: false });
      }
    }
    return rows;
  }
}
