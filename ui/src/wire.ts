// Generated from the JSON schemas of `plexus-protocol` by `cargo xtask wire`. Do not edit.
// The documentation of each type and field is in that crate.

export type Json = null | boolean | number | string | Json[] | Fields;
export type Fields = { [name: string]: Json };

export type Access = 'read' | 'watch' | 'decide' | 'act' | 'rule';

export interface Answer {
  approval_id: ApprovalId;
  approve: boolean;
  message?: string;
  updated_input?: Fields;
  interrupt?: boolean;
  answers?: Fields;
  digest?: string;
  mode?: PermissionMode;
  remember?: Remember;
}

export type AnswerEffect = 'allow' | 'deny';

export type Answered =
  | { type: 'ok'; approval_id: ApprovalId; settled?: ApprovalId[] }
  | {
    type: 'already_resolved';
    approval_id: ApprovalId;
    status: ApprovalStatus;
    decision?: Decision;
    resolved_at?: number;
  }
  | { type: 'error'; approval_id: ApprovalId; error: string; message: string };

export interface Approval {
  id: ApprovalId;
  session_id: SessionId;
  session_name: SessionName;
  kind: ApprovalKind;
  tool_name: string;
  tool_use_id: string;
  input: Fields;
  status: ApprovalStatus;
  created_at: number;
  expires_at?: number;
  asked_of: AskedOf;
  passed?: EscalationStep[];
  passes_on_at?: number;
  reason?: string;
  suggestions?: Fields[];
  agent_id?: string;
  blocked_path?: string;
  requires_user_interaction?: boolean;
  beyond_rules?: boolean;
  cwd: string;
  digest?: string;
  truncated?: boolean;
  delivered_at?: number;
  resolved_at?: number;
  decision?: Decision;
}

export type ApprovalChange = 'asked' | 'resolved';

export interface ApprovalFrame {
  type: ApprovalChange;
  approval: Approval;
}

export type ApprovalId = string;

export type ApprovalKind = 'tool' | 'question' | 'plan' | 'budget';

export type ApprovalStatus = 'pending' | 'allowed' | 'denied' | 'expired' | 'withdrawn';

export type AskedOf = { kind: 'operator' } | { kind: 'session'; id: SessionId } | { kind: 'parent'; id: string };

export type Attention = 'permission' | 'question' | 'plan' | 'budget' | 'rate_limited' | 'api_retry' | 'stalled';

export interface AuditEntry {
  at: number;
  kind: AuditKind;
  status: string;
  by: Decider;
  right?: Right;
  session_id?: SessionId;
  session_name?: SessionName;
  approval_id?: ApprovalId;
  tool_use_id?: string;
  tool_name?: string;
  digest?: string;
  cwd?: string;
  input?: Fields;
  updated_input?: Fields;
  message?: string;
  gate?: Fields;
  asked_of?: AskedOf;
  passed?: EscalationStep[];
  asked_at?: number;
  token?: TokenName;
  detail?: Fields;
}

export interface AuditHead {
  number: number;
  hash: string;
}

export type AuditKind = 'decision' | 'gate' | 'token' | 'policy' | 'session';

export interface AuditRow {
  number: number;
  hash: string;
  entry: AuditEntry;
}

export interface Budget {
  cost_usd?: number;
  turns?: number;
  tool_calls?: number;
  wall_secs?: number;
  children?: number;
}

export interface BudgetView {
  cost_usd?: LimitView;
  turns?: LimitView;
  tool_calls?: LimitView;
  wall_secs?: LimitView;
  children?: LimitView;
}

export type Channel = 'control' | 'mcp';

export type Counts = 'fully' | 'narrowing' | 'within_scope';

export type Decider =
  | { kind: 'operator' }
  | { kind: 'token'; name: TokenName }
  | { kind: 'session'; id: SessionId }
  | { kind: 'parent'; id: string }
  | { kind: 'hub' };

export interface Decision {
  approve: boolean;
  message?: string;
  updated_input?: Fields;
  mode?: PermissionMode;
  interrupt?: boolean;
  rule?: number;
  by: Decider;
  right: Right;
}

export type Effect = 'allow' | 'deny' | 'ask';

export interface ErrorFrame {
  type: ErrorKind;
  message: string;
  session?: boolean;
}

export type ErrorKind =
  | 'session_not_found'
  | 'approval_not_found'
  | 'turn_not_found'
  | 'event_not_found'
  | 'tree_not_found'
  | 'node_not_found'
  | 'tree_in_use'
  | 'gone'
  | 'method_not_found'
  | 'name_taken'
  | 'token_not_found'
  | 'invalid_params'
  | 'unknown_field'
  | 'not_supported_yet'
  | 'bad_working_dir'
  | 'bad_project'
  | 'bad_user_settings'
  | 'worktree_failed'
  | 'no_worktree'
  | 'setup_failed'
  | 'too_large'
  | 'turn_in_progress'
  | 'no_turn'
  | 'agent_refused'
  | 'would_wait_for_itself'
  | 'answers_required'
  | 'input_not_seen'
  | 'rule_not_found'
  | 'beyond_scope'
  | 'budget_exceeded'
  | 'budget_exhausted'
  | 'denied_by_rule'
  | 'forbidden'
  | 'limit_reached'
  | 'disk_low'
  | 'no_wall'
  | 'store_unavailable'
  | 'shutting_down'
  | 'internal';

export type EscalationReason = 'escalated' | 'unanswered' | 'absent';

export interface EscalationStep {
  from?: AskedOf;
  why: EscalationReason;
  by: Decider;
  opinion?: string;
  at: number;
}

export type Event =
  | { type: 'start'; id: SessionId; user_position: Position; origin?: string }
  | { type: 'content'; text: string; parent_tool_use_id?: string; truncated?: JournalRange }
  | { type: 'thinking'; text: string; parent_tool_use_id?: string; truncated?: JournalRange }
  | {
    type: 'tool_use';
    tool_name: string;
    tool_use_id: string;
    input: Fields;
    parent_tool_use_id?: string;
    truncated?: JournalRange;
  }
  | { type: 'approval_requested'; approval_id: ApprovalId; tool_use_id: string }
  | {
    type: 'approval_resolved';
    approval_id: ApprovalId;
    tool_use_id: string;
    status: ApprovalStatus;
    by: Decider;
    message?: string;
    updated_input?: Fields;
  }
  | {
    type: 'tool_result';
    tool_use_id: string;
    output: Json;
    is_error: boolean;
    parent_tool_use_id?: string;
    truncated?: JournalRange;
  }
  | {
    type: 'complete';
    new_head: Position;
    result: string;
    usage: Fields;
    cost_usd: number;
    num_turns: number;
  }
  | { type: 'error'; message: string; reason?: string; stderr?: string[] }
  | { type: 'system'; subtype: string; data: Fields };

export interface FileDiff {
  path: string;
  old_path?: string;
  status: FileStatus;
  insertions: number;
  deletions: number;
  binary: boolean;
  patch?: string;
  truncated?: boolean;
}

export type FileStatus = 'added' | 'modified' | 'deleted' | 'renamed' | 'untracked';

export interface Finished {
  session_id: SessionId;
  session_name: SessionName;
  turn: number;
  status: Status;
  result?: string;
}

export type ForkAt = number | NodeId;

export type Format = 'text' | 'markdown' | 'messages';

export interface HelloFrame {
  cursor: number;
  may: Access[];
  version: string;
}

export interface Hit {
  tree_id: TreeId;
  node: NodeSummary;
}

export type Isolation = 'worktree' | WorktreeIsolation;

export type IsolationKind = 'worktree';

export interface JournalRange {
  run: number;
  start: number;
  end: number;
}

export interface LeftBelow {
  session_id: SessionId;
  session_name: SessionName;
  worktree: LeftWorktree;
}

export interface LeftWorktree {
  path: string;
  branch: string;
  kept: boolean;
  error?: string;
}

export interface Like {
  at: number;
  status: ApprovalStatus;
  by: Decider;
  message?: string;
  same: boolean;
  edited?: boolean;
  summary: string;
}

export interface LimitView {
  limit: number;
  used: number;
  left: number;
}

export interface LoadsView {
  mcp_servers?: string[];
  user_settings?: string[];
  project?: ProjectView;
}

export interface McpServerGiven {
  type?: McpServerKind;
  command?: string;
  args?: string[];
  env?: { [name: string]: string };
  url?: string;
  headers?: { [name: string]: string };
  timeout?: number;
}

export type McpServerKind = 'stdio' | 'http' | 'sse' | 'inherited';

export interface Node {
  id: NodeId;
  parent_id?: NodeId;
  depth: number;
  role: Role;
  session_id?: SessionId;
  turn?: number;
  children: number;
  preview: string;
  created_at: number;
  tree_id: TreeId;
  content: Fields[];
}

export type NodeId = string;

export interface NodeSummary {
  id: NodeId;
  parent_id?: NodeId;
  depth: number;
  role: Role;
  session_id?: SessionId;
  turn?: number;
  children: number;
  preview: string;
  created_at: number;
}

export interface NumberedEvent {
  seq: number;
  event: Event;
  at: number;
  truncated?: boolean;
}

export type Outcome = 'allow' | 'deny' | 'ask' | 'own_course';

export type PermissionMode = 'default' | 'acceptEdits' | 'plan';

export type PolicyName = 'own_course' | 'ask_all' | 'approvals' | 'plan' | 'allow_all';

export interface Position {
  tree_id: TreeId;
  node_id: NodeId;
}

export interface ProjectView {
  files: string[];
  changed?: string[];
  trusted_at: number;
  env?: string[];
  mcp_servers?: string[];
  agents?: string[];
  left_out?: string[];
}

export interface Proof {
  key: string;
  peer: string;
  signature: string;
}

export type Protection = { state: 'held'; by: string } | { state: 'open'; why: string };

export interface Purpose {
  path: PurposeStep[];
  turn: number;
  prompt?: string;
  truncated?: boolean;
}

export interface PurposeStep {
  id: SessionId;
  name: SessionName;
}

export interface Remember {
  rule: string;
  session_id?: SessionId;
  expires_secs?: number;
}

export type Right = 'operator' | 'token' | 'ancestor' | 'rule' | 'expiry' | 'withdrawal' | 'fail_closed';

export type Role = 'root' | 'user' | 'assistant' | 'outcome';

export interface RuleGiven {
  rule: string;
  effect: Effect;
  expires_at?: number;
}

export interface RuleView {
  number: number;
  rule: string;
  effect: Effect;
  counts: Counts;
  session_id?: SessionId;
  expires_at?: number;
  made_by: Decider;
  created_at: number;
}

export type SandboxKind = 'namespaces' | 'none';

export interface SandboxView {
  signals: Protection;
  terminals: Protection;
  descriptors: Protection;
  memory: Protection;
}

export interface SessionFrame {
  turn: number;
  seq: number;
  event: Event;
  at: number;
}

export type SessionId = string;

export type SessionName = string;

export interface SessionView {
  id: SessionId;
  name: SessionName;
  path: string;
  status: Status;
  attention?: Attention[];
  turn: number;
  working_dir: string;
  worktree?: WorktreeView;
  model?: string;
  channel: Channel;
  loopback_enabled: boolean;
  policy: PolicyName;
  permission_mode: string;
  hub_tools: boolean;
  answers_to: AskedOf;
  depth: number;
  pending_approvals: number;
  cost_usd: number;
  tree: TreeView;
  budget?: BudgetView;
  head: Position;
  approval_timeout_secs?: number;
  escalate_after_secs?: number;
  wake?: boolean;
  pid?: number;
  wall?: SandboxKind;
  wall_missing?: string;
  sandbox?: SandboxView;
  loads?: LoadsView;
  created_at: number;
  metadata?: Fields;
}

export interface SignIn {
  code: string;
}

export interface SignedIn {
  token: string;
  name: TokenName;
  expires_at: number;
}

export type Status = 'idle' | 'running' | 'awaiting_permission' | 'complete' | 'failed' | 'interrupted';

export interface StreamView {
  session_id: SessionId;
  session_name: SessionName;
  turn: number;
  status: Status;
  attention?: Attention[];
  total_events: number;
  read_position: number;
  started_at: number;
  ended_at?: number;
}

export type TargetFile =
  | { state: 'text'; path: string; text: string }
  | { state: 'missing'; path: string }
  | { state: 'unavailable'; path: string; reason: string };

export interface Token {
  name: TokenName;
  right: TokenRight;
  created_at: number;
  expires_at?: number;
}

export type TokenName = string;

export type TokenRight = 'read' | 'decide' | 'operator';

export type TranscriptFormat = 'markdown' | 'jsonl' | 'html';

export type TreeId = string;

export interface TreeSession {
  id: SessionId;
  name: SessionName;
  head: NodeId;
  deleted?: boolean;
}

export interface TreeSummary {
  id: TreeId;
  root: NodeId;
  nodes: number;
  sessions: TreeSession[];
  created_at: number;
}

export interface TreeView {
  sessions: number;
  running: number;
  pending_approvals: number;
  cost_usd: number;
}

export type Updated = 'new_name' | 'permission_mode' | 'model';

export interface WorktreeChanges {
  files: number;
  insertions: number;
  deletions: number;
  untracked?: number;
  commits: number;
}

export interface WorktreeIsolation {
  type: IsolationKind;
  setup?: string;
  setup_timeout_secs?: number;
  copy?: string[];
  base?: string;
}

export interface WorktreeView {
  path: string;
  branch: string;
  base?: string;
  changes?: WorktreeChanges;
  error?: string;
}

export interface Methods {
  'arbor.children': {
    params: { node_id: NodeId; after?: NodeId; limit?: number };
    result: { type: 'ok'; nodes: NodeSummary[]; next?: NodeId };
  };
  'arbor.delete': {
    params: { tree_id: TreeId };
    result: { type: 'ok'; tree_id: TreeId; removed: number };
  };
  'arbor.leaves': {
    params: { tree_id: TreeId; after?: NodeId; limit?: number };
    result: { type: 'ok'; nodes: NodeSummary[]; next?: NodeId };
  };
  'arbor.node_get': {
    params: { node_id: NodeId };
    result: { type: 'ok'; node: Node };
  };
  'arbor.path': {
    params: { node_id?: NodeId; session_id?: SessionId; name?: string; from?: number; limit?: number };
    result: { type: 'ok'; nodes: Node[]; next?: number };
  };
  'arbor.render': {
    params: {
      node_id?: NodeId;
      session_id?: SessionId;
      name?: string;
      format?: Format;
      from?: number;
      limit?: number;
    };
    result: { type: 'ok'; text?: string; messages?: Fields[]; next?: number };
  };
  'arbor.search': {
    params: { query: string; tree_id?: TreeId; before?: NodeId; limit?: number };
    result: { type: 'ok'; found: Hit[]; next?: NodeId };
  };
  'arbor.tree_get': {
    params: { tree_id: TreeId; after?: NodeId; limit?: number };
    result: { type: 'ok'; tree: TreeSummary; nodes: NodeSummary[]; next?: NodeId };
  };
  'arbor.tree_list': {
    params: { after?: TreeId; limit?: number };
    result: { type: 'ok'; trees: TreeSummary[]; next?: TreeId };
  };
  'audit.list': {
    params: {
      session_id?: SessionId;
      since?: number;
      until?: number;
      kind?: AuditKind;
      by?: string;
      tool_name?: string;
      after?: number;
      newest_first?: boolean;
      before?: number;
      limit?: number;
    };
    result: { type: 'ok'; rows: AuditRow[]; next?: number };
  };
  'audit.verify': {
    params: Record<string, never>;
    result: 
      | { type: 'ok'; rows: number; head: AuditHead }
      | { type: 'broken'; number: number; why: string };
  };
  'claudecode.chat': {
    params: { session_id?: SessionId; name?: string; prompt: string; expand?: boolean };
    result: {
        type: 'ok';
        status: Status;
        turn: number;
        events: NumberedEvent[];
        attention?: Attention[];
        pending_approvals: Approval[];
        read_position: number;
        total_events: number;
        has_more: boolean;
      };
  };
  'claudecode.chat_async': {
    params: { session_id?: SessionId; name?: string; prompt: string; expand?: boolean };
    result: { type: 'started'; session_id: SessionId; turn: number; cursor: number };
  };
  'claudecode.create': {
    params: {
      name: SessionName;
      working_dir: string;
      model?: string;
      system_prompt?: string;
      loopback_enabled?: boolean;
      channel?: Channel;
      permission_mode?: PermissionMode;
      policy?: PolicyName;
      rules?: RuleGiven[];
      prompt?: string;
      env?: { [name: string]: string };
      hub_tools?: boolean;
      approval_timeout_secs?: number;
      escalate_after_secs?: number;
      wake?: boolean;
      metadata?: Fields;
      deltas?: boolean;
      isolation?: Isolation;
      budget?: Budget;
      approve_scope?: string[];
      mcp_servers?: { [name: string]: McpServerGiven };
      trust_project?: boolean;
    };
    result: {
        type: 'created';
        id: SessionId;
        head: Position;
        turn?: number;
        cursor?: number;
        may_decide?: string[];
        hint?: string;
      };
  };
  'claudecode.delete': {
    params: { session_id?: SessionId; name?: string };
    result: { type: 'ok'; session_id: SessionId; worktree?: LeftWorktree; below?: LeftBelow[] };
  };
  'claudecode.diff': {
    params: { session_id?: SessionId; name?: string; path?: string };
    result: { type: 'ok'; base: string; branch: string; files: FileDiff[]; truncated?: boolean };
  };
  'claudecode.event': {
    params: { session_id?: SessionId; name?: string; turn?: number; seq: number };
    result: { type: 'ok'; turn: number; seq: number; event: Event; at: number };
  };
  'claudecode.fork': {
    params: { session_id?: SessionId; name?: string; new_name: SessionName; at?: ForkAt };
    result: { type: 'forked'; id: SessionId; head: Position };
  };
  'claudecode.get': {
    params: { session_id?: SessionId; name?: string };
    result: { type: 'ok'; session: SessionView };
  };
  'claudecode.interrupt': {
    params: { session_id?: SessionId; name?: string };
    result: { type: 'ok'; session_id: SessionId };
  };
  'claudecode.list': {
    params: Record<string, never>;
    result: { type: 'ok'; sessions: SessionView[] };
  };
  'claudecode.poll': {
    params: {
      session_id?: SessionId;
      name?: string;
      from_seq?: number;
      limit?: number;
      turn?: number;
      wait_ms?: number;
      max_bytes?: number;
    };
    result: {
        type: 'ok';
        status: Status;
        turn: number;
        events: NumberedEvent[];
        attention?: Attention[];
        pending_approvals: Approval[];
        read_position: number;
        total_events: number;
        has_more: boolean;
      };
  };
  'claudecode.rename': {
    params: { session_id?: SessionId; name?: string; new_name: SessionName };
    result: { type: 'ok'; session_id: SessionId };
  };
  'claudecode.send': {
    params: { session_id?: SessionId; name?: string; prompt: string; expand?: boolean };
    result: { type: 'sent'; session_id: SessionId; turn: number };
  };
  'claudecode.set_budget': {
    params: { session_id?: SessionId; name?: string; budget: Budget };
    result: { type: 'ok'; session_id: SessionId; budget: BudgetView };
  };
  'claudecode.set_model': {
    params: { session_id?: SessionId; name?: string; model?: string };
    result: { type: 'ok'; session_id: SessionId };
  };
  'claudecode.set_permission_mode': {
    params: { session_id?: SessionId; name?: string; mode: PermissionMode };
    result: { type: 'ok'; session_id: SessionId };
  };
  'claudecode.stop': {
    params: { session_id?: SessionId; name?: string };
    result: { type: 'ok'; session_id: SessionId };
  };
  'claudecode.streams': {
    params: { session_id?: SessionId; name?: string; finished?: boolean };
    result: { type: 'ok'; streams: StreamView[] };
  };
  'claudecode.transcript': {
    params: {
      session_id?: SessionId;
      name?: string;
      format?: TranscriptFormat;
      from?: number;
      limit?: number;
    };
    result: { type: 'ok'; text: string; next?: number };
  };
  'claudecode.trust_project': {
    params: { session_id?: SessionId; name?: string; trust?: boolean };
    result: { type: 'ok'; session_id: SessionId; project?: ProjectView };
  };
  'claudecode.update': {
    params: {
      session_id?: SessionId;
      name?: string;
      new_name?: SessionName;
      model?: string;
      permission_mode?: PermissionMode;
    };
    result: { type: 'ok'; session_id: SessionId; updated: Updated[] };
  };
  'claudecode.user_settings': {
    params: { accept?: boolean };
    result: { type: 'ok'; file?: string; loads: string[]; deny: string[]; changed: string[] };
  };
  'console.link': {
    params: { url?: string };
    result: { type: 'ok'; link: string; file: string; expires_in_secs: number };
  };
  'loopback.configure': {
    params: { session_id?: SessionId; name?: string };
    result: {
        type: 'ok';
        session_id: SessionId;
        mcp_config: Fields;
        permission_prompt_tool: string;
        args: string[];
      };
  };
  'loopback.escalate': {
    params: { approval_id: ApprovalId; opinion?: string };
    result: 
      | { type: 'ok'; approval_id: ApprovalId; asked_of: AskedOf }
      | { type: 'already_resolved'; approval_id: ApprovalId; status: ApprovalStatus };
  };
  'loopback.extend': {
    params: { approval_id: ApprovalId; secs: number };
    result: 
      | { type: 'ok'; approval_id: ApprovalId; expires_at: number }
      | { type: 'already_resolved'; approval_id: ApprovalId; status: ApprovalStatus };
  };
  'loopback.get': {
    params: { approval_id: ApprovalId; context?: boolean };
    result: { type: 'ok'; approval: Approval; purpose?: Purpose; like?: Like[]; file?: TargetFile };
  };
  'loopback.pending': {
    params: { session_id?: SessionId; name?: string };
    result: { type: 'ok'; approvals: Approval[] };
  };
  'loopback.permit': {
    params: { tool_name: string; input: Fields; tool_use_id: string };
    result: Fields;
  };
  'loopback.respond': {
    params: {
      approval_id?: ApprovalId;
      approve?: boolean;
      message?: string;
      updated_input?: Fields;
      interrupt?: boolean;
      answers?: Fields;
      digest?: string;
      decisions?: Answer[];
      wait_ms?: number;
      cursor?: number;
      mode?: PermissionMode;
      remember?: Remember;
    };
    result: Answered | Answered[];
  };
  'loopback.wait': {
    params: { cursor?: number; timeout_ms?: number };
    result: {
        type: 'ok';
        cursor: number;
        approvals: Approval[];
        finished: Finished[];
        notices: Fields[];
        still_open: ApprovalId[];
      };
  };
  'policy.add': {
    params: { session_id?: SessionId; name?: SessionName; rules: RuleGiven[] };
    result: { type: 'ok'; rules: RuleView[]; settled: ApprovalId[] };
  };
  'policy.list': {
    params: { session_id?: SessionId; name?: SessionName };
    result: { type: 'ok'; rules: RuleView[] };
  };
  'policy.preview': {
    params: { approval_id: ApprovalId; rule: string; effect?: AnswerEffect; session_id?: SessionId };
    result: 
      | { type: 'ok'; rule: string; covers: boolean; settles: ApprovalId[] }
      | { type: 'already_resolved'; approval_id: ApprovalId; status: ApprovalStatus };
  };
  'policy.revoke': {
    params: { number: number };
    result: { type: 'ok'; number: number };
  };
  'policy.test': {
    params: {
      session_id?: SessionId;
      name?: SessionName;
      tool_name: string;
      input: Fields;
      cwd?: string;
    };
    result: { type: 'ok'; outcome: Outcome; why: string; rules: RuleView[] };
  };
  'token.list': {
    params: Record<string, never>;
    result: { type: 'ok'; tokens: Token[] };
  };
  'token.new': {
    params: { name: TokenName; right: TokenRight; expires_secs?: number };
    result: { type: 'created'; name: TokenName; token: string; expires_at?: number };
  };
  'token.revoke': {
    params: { name: TokenName };
    result: { type: 'ok'; name: TokenName };
  };
}

export type Method = keyof Methods;
export type Params<M extends Method> = Methods[M]['params'];
export type Result<M extends Method> = Methods[M]['result'];
