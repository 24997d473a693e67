/** What the hub sends, as far as the console looks at it. The words are those of `plexus-protocol`. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Fields = { [key: string]: Json };

export type Who =
  | { kind: 'operator' }
  | { kind: 'token'; name: string }
  | { kind: 'session'; id: string }
  | { kind: 'parent'; id: string }
  | { kind: 'hub' };

export interface Passed {
  from?: Who;
  why: 'escalated' | 'unanswered' | 'absent';
  by: Who;
  opinion?: string;
  at: number;
}

export interface Decision {
  approve: boolean;
  message?: string;
  updated_input?: Fields;
  mode?: string;
  interrupt?: boolean;
  rule?: number;
  by: Who;
  right: string;
}

export type ApprovalStatus = 'pending' | 'allowed' | 'denied' | 'expired' | 'withdrawn';

export interface Approval {
  id: string;
  session_id: string;
  session_name: string;
  kind: 'tool' | 'question' | 'plan' | 'budget';
  tool_name: string;
  tool_use_id: string;
  input: Fields;
  status: ApprovalStatus;
  created_at: number;
  expires_at?: number;
  asked_of: Who;
  passed?: Passed[];
  passes_on_at?: number;
  reason?: string;
  suggestions?: Json[];
  agent_id?: string;
  blocked_path?: string;
  beyond_rules?: boolean;
  cwd: string;
  digest?: string;
  truncated?: boolean;
  resolved_at?: number;
  decision?: Decision;
}

export type Status = 'idle' | 'running' | 'awaiting_permission' | 'complete' | 'failed' | 'interrupted';

/** One thing that happened in a turn. */
export interface TurnEvent {
  turn: number;
  seq: number;
  at: number;
  event: { type: string } & Fields;
}

/** What keeps an agent from going on. */
export type Attention = 'permission' | 'question' | 'plan' | 'budget' | 'rate_limited' | 'api_retry' | 'stalled';

export interface Position {
  tree_id: string;
  node_id: string;
}

export interface Session {
  id: string;
  name: string;
  status: Status;
  attention?: Attention[];
  turn: number;
  working_dir: string;
  worktree?: { path: string; branch: string; base?: string; changes?: Fields; error?: string };
  model?: string;
  channel: string;
  loopback_enabled: boolean;
  policy: string;
  permission_mode: string;
  hub_tools: boolean;
  answers_to: Who;
  depth: number;
  pending_approvals: number;
  cost_usd: number;
  tree: { sessions: number; running: number; pending_approvals: number; cost_usd: number };
  budget?: Fields;
  head: Position;
  pid?: number;
  created_at: number;
}
