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

export type AnsweredBy = 'rule' | 'person' | 'agent' | 'hub';

export interface Approval {
  id: ApprovalId;
  session_id: SessionId;
  session_name: SessionName;
  session_path?: string;
  host?: HostName;
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
  said?: string;
  risks?: RiskMark[];
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

export type Asked = 'person' | 'agent';

export type AskedOf = { kind: 'operator' } | { kind: 'session'; id: SessionId } | { kind: 'parent'; id: string };

export interface AttachmentGiven {
  name: string;
  media_type: string;
  data: string;
}

export interface AttachmentView {
  name: string;
  media_type: string;
  bytes: number;
}

export type Attention = 'permission' | 'question' | 'plan' | 'budget' | 'rate_limited' | 'api_retry' | 'stalled';

export interface AuditEntry {
  at: number;
  kind: AuditKind;
  status: string;
  by: Decider;
  right?: Right;
  session_id?: SessionId;
  session_name?: SessionName;
  session_path?: string;
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

export type AuditKind = 'decision' | 'gate' | 'token' | 'policy' | 'session' | 'template' | 'host';

export interface AuditRow {
  number: number;
  hash: string;
  entry: AuditEntry;
}

export type AuthorSource = 'settings' | 'base_commit';

export interface BranchCommit {
  id: string;
  summary: string;
  author: string;
  time: number;
}

export interface BranchState {
  uncommitted: number;
  ahead?: number;
  behind?: number;
  merged: boolean;
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

export interface CommitProposal {
  message: string;
  author?: Person;
  author_from?: AuthorSource;
}

export interface ConflictFile {
  path: string;
  sides: ConflictSides;
  text?: string;
  truncated?: boolean;
}

export interface ConflictSides {
  base: boolean;
  ours: boolean;
  theirs: boolean;
}

export type Counts = 'fully' | 'narrowing' | 'within_scope';

export type CurrentAction =
  | { type: 'starting' }
  | { type: 'thinking' }
  | { type: 'tools'; calls: RunningCall[]; more?: number }
  | {
    type: 'approval';
    kind: ApprovalKind;
    call: RunningCall;
    asked_of: AskedOf;
    more?: number;
  };

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

export interface Denial {
  at: number;
  by: Decider;
  message?: string;
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
  | 'run_not_found'
  | 'event_not_found'
  | 'tree_not_found'
  | 'node_not_found'
  | 'tree_in_use'
  | 'gone'
  | 'method_not_found'
  | 'name_taken'
  | 'token_not_found'
  | 'template_not_found'
  | 'invalid_params'
  | 'unknown_field'
  | 'not_supported_yet'
  | 'bad_working_dir'
  | 'claude_too_old'
  | 'bad_project'
  | 'bad_user_settings'
  | 'worktree_failed'
  | 'no_worktree'
  | 'review_outdated'
  | 'repository_refused'
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
  | 'host_unreachable'
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
  | {
    type: 'start';
    id: SessionId;
    user_position: Position;
    origin?: string;
    attachments?: AttachmentView[];
  }
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
    patch?: Hunk[];
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
  old_mode?: FileMode;
  new_mode?: FileMode;
  version?: string;
  insertions: number;
  deletions: number;
  binary: boolean;
  patch?: string;
  truncated?: boolean;
  image?: ImageDiff;
}

export type FileMode = 'plain' | 'executable' | 'link' | 'submodule';

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

export interface HookCommand {
  type: HookKind;
  command: string;
  timeout?: number;
}

export interface HookGroup {
  matcher?: string;
  hooks: HookCommand[];
}

export type HookKind = 'command';

export type Hooks = { [name: string]: HookGroup[] };

export type HostLabel = string;

export type HostName = string;

export type HostState = 'connected' | 'unreachable' | 'lost';

export interface HostView {
  name: HostName;
  here: boolean;
  state: HostState;
  silent_secs?: number;
  draining?: boolean;
  lost_commits?: boolean;
  version: string;
  labels?: HostLabel[];
  slots?: number;
  used_slots: number;
  sessions: number;
  open_approvals: number;
}

export interface Hunk {
  old_start: number;
  new_start: number;
  lines: string[];
}

export interface ImageDiff {
  media_type: string;
  old?: string;
  new?: string;
}

export interface ImportItem {
  kind: ImportKind;
  name: string;
  state: ImportState;
  does: string;
  file: string;
  digest?: string;
  text?: string;
  with?: string[];
  left_out?: string[];
  reason?: string;
}

export type ImportKind = 'rule' | 'server' | 'agent' | 'skill';

export interface ImportRef {
  kind: ImportKind;
  name: string;
}

export type ImportState = 'new' | 'imported' | 'changed' | 'gone' | 'refused';

export interface ImportTake {
  kind: ImportKind;
  name: string;
  digest: string;
}

export interface ImportedView {
  mcp_servers?: string[];
  agents?: string[];
}

export type Isolation = 'worktree' | WorktreeIsolation;

export type IsolationKind = 'worktree';

export interface JournalRange {
  run: number;
  start: number;
  end: number;
}

export interface Lane {
  session_id: SessionId;
  session_name: SessionName;
  title?: string;
  path: string;
  depth: number;
  spans: LaneSpan[];
  marks: LaneMark[];
  more_marks?: number;
}

export interface LaneMark {
  approval_id: ApprovalId;
  tool_name: string;
  asked_at: number;
  asked_of: Asked;
  status: ApprovalStatus;
  resolved_at?: number;
  by?: AnsweredBy;
}

export interface LaneSpan {
  state: LaneState;
  from: number;
  to: number;
}

export type LaneState = 'working' | 'waiting_for_agent' | 'waiting_for_person';

export interface LeftBelow {
  session_id: SessionId;
  session_name: SessionName;
  worktree: LeftWorktree;
}

export interface LeftWorktree {
  path: string;
  branch: string;
  kept: boolean;
  would_lose?: string[];
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
  imported?: ImportedView;
  hooks?: Hooks;
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

export type MergeHow = 'merge' | 'rebase' | 'fast_forward' | 'squash';

export interface NewEvent {
  seq: number;
  event: Fields;
  truncated?: boolean;
}

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

export interface OutputLine {
  from: number;
  bytes: number;
  text: string;
  truncated?: boolean;
}

export type OutputStream = 'journal' | 'stderr';

export type PermissionMode = 'default' | 'acceptEdits' | 'plan';

export interface Person {
  name: string;
  email: string;
}

export type PolicyName = 'own_course' | 'ask_all' | 'approvals' | 'plan' | 'allow_all';

export interface PollNews {
    type: 'ok';
    status: Status;
    turn: number;
    events?: NewEvent[];
    attention?: Attention[];
    pending_approvals?: Approval[];
    has_more?: boolean;
  }

export interface PollResult {
    type: 'ok';
    status: Status;
    turn: number;
    events: NumberedEvent[];
    attention?: Attention[];
    pending_approvals: Approval[];
    read_position: number;
    total_events: number;
    has_more: boolean;
  }

export interface Position {
  tree_id: TreeId;
  node_id: NodeId;
}

export interface ProjectRef {
  name: string;
  root: string;
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

export interface PushCommand {
  remote: string;
  url: string;
  command: string;
}

export interface RecentDir {
  path: string;
  used_at: number;
}

export interface Remember {
  rule: string;
  session_id?: SessionId;
  expires_secs?: number;
}

export interface ResumableSession {
  id: SessionId;
  modified_at: number;
  first_prompt: string;
}

export type Right = 'operator' | 'token' | 'ancestor' | 'rule' | 'expiry' | 'withdrawal' | 'fail_closed';

export type RiskKind =
  | 'denied_before'
  | 'unclear'
  | 'runs_downloaded_code'
  | 'force_push'
  | 'recursive_delete'
  | 'credentials'
  | 'privilege'
  | 'system'
  | 'publishes'
  | 'runs_later'
  | 'history_rewrite'
  | 'permissions'
  | 'outside_project'
  | 'network'
  | 'other';

export interface RiskMark {
  kind: RiskKind;
  reason: string;
  denial?: Denial;
}

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

export interface RunningCall {
  tool_name: string;
  summary: string;
}

export type SandboxKind = 'namespaces' | 'none';

export interface SandboxView {
  signals: Protection;
  terminals: Protection;
  descriptors: Protection;
  memory: Protection;
}

export interface SeriesBucket {
  at: number;
  cost_usd: number;
  turns: number;
  calls: number;
  by_rule: number;
  by_person: number;
  by_agent: number;
  allowed: number;
  denied: number;
  expired: number;
  withdrawn: number;
  waited_for_person_secs: number;
  waited_for_agent_secs: number;
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
  host?: HostName;
  title?: string;
  status: Status;
  attention?: Attention[];
  current_action?: CurrentAction;
  last_activity_at: number;
  turn: number;
  working_dir: string;
  project: ProjectRef;
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
  turn_cost_usd?: number;
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
  resumed_from?: SessionId;
  created_at: number;
  archived_at?: number;
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
  session_path: string;
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

export type TemplateName = string;

export interface TemplateView {
  name: TemplateName;
  prompt?: string;
  working_dir?: string;
  model?: string;
  permission_mode?: PermissionMode;
  policy?: PolicyName;
  budget?: Budget;
  isolation?: Isolation;
  mcp_servers?: string[];
  saved_at: number;
}

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

export type Updated = 'new_name' | 'permission_mode' | 'model' | 'title' | 'archived';

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
  base_branch?: string;
  state?: BranchState;
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
  'audit.series': {
    params: { from: number; to?: number; buckets?: number; session_id?: SessionId };
    result: { type: 'ok'; from: number; to: number; bucket_secs: number; buckets: SeriesBucket[] };
  };
  'audit.verify': {
    params: Record<string, never>;
    result: 
      | { type: 'ok'; rows: number; head: AuditHead }
      | { type: 'broken'; number: number; why: string };
  };
  'claudecode.chat': {
    params: {
      session_id?: SessionId;
      name?: string;
      prompt: string;
      expand?: boolean;
      attachments?: AttachmentGiven[];
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
  'claudecode.chat_async': {
    params: {
      session_id?: SessionId;
      name?: string;
      prompt: string;
      expand?: boolean;
      attachments?: AttachmentGiven[];
    };
    result: { type: 'started'; session_id: SessionId; turn: number; cursor: number };
  };
  'claudecode.commit': {
    params: {
      session_id?: SessionId;
      name?: string;
      digest: string;
      message: string;
      paths?: string[];
      author?: Person;
    };
    result: {
        type: 'ok';
        head: string;
        parent: string;
        branch: string;
        files: number;
        converted?: string[];
      };
  };
  'claudecode.compact': {
    params: { session_id?: SessionId; name?: string; instructions?: string };
    result: { type: 'started'; session_id: SessionId; turn: number; cursor: number };
  };
  'claudecode.create': {
    params: {
      name: SessionName;
      working_dir: string;
      host?: HostName;
      labels?: string[];
      model?: string;
      system_prompt?: string;
      append_system_prompt?: string;
      loopback_enabled?: boolean;
      channel?: Channel;
      permission_mode?: PermissionMode;
      policy?: PolicyName;
      rules?: RuleGiven[];
      prompt?: string;
      attachments?: AttachmentGiven[];
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
      resume?: SessionId;
      imported?: boolean;
      hooks?: Hooks;
      template?: TemplateName;
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
    params: { session_id?: SessionId; name?: string; path?: string; context_lines?: number };
    result: {
        type: 'ok';
        base: string;
        branch: string;
        base_branch?: string;
        digest?: string;
        head?: string;
        commits: BranchCommit[];
        state: BranchState;
        proposal: CommitProposal;
        files: FileDiff[];
        truncated?: boolean;
      };
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
  'claudecode.import': {
    params: { take?: ImportTake[]; remove?: ImportRef[] };
    result: { type: 'ok'; taken: ImportRef[]; removed: ImportRef[] };
  };
  'claudecode.imports': {
    params: Record<string, never>;
    result: { type: 'ok'; dir: string; items: ImportItem[] };
  };
  'claudecode.interrupt': {
    params: { session_id?: SessionId; name?: string };
    result: { type: 'ok'; session_id: SessionId };
  };
  'claudecode.keep_branch': {
    params: { session_id?: SessionId; name?: string; remote_branch?: string };
    result: { type: 'ok'; branch: string; head: string; uncommitted: number; pushes: PushCommand[] };
  };
  'claudecode.list': {
    params: { archived?: boolean };
    result: { type: 'ok'; sessions: SessionView[] };
  };
  'claudecode.merge': {
    params: {
      session_id?: SessionId;
      name?: string;
      head: string;
      how: MergeHow;
      into?: string;
      onto?: string;
      preview?: string;
      message?: string;
      author?: Person;
    };
    result: 
      | { type: 'ok'; into: string; before: string; after: string; checkout?: string }
      | { type: 'differs'; into: string; before: string; preview: string; files: FileDiff[] }
      | {
        type: 'conflicts';
        into: string;
        before: string;
        commit?: string;
        files: ConflictFile[];
        truncated?: boolean;
      };
  };
  'claudecode.output': {
    params: {
      session_id?: SessionId;
      name?: string;
      run?: number;
      stream?: OutputStream;
      from?: number;
      limit?: number;
      max_bytes?: number;
    };
    result: {
        type: 'ok';
        run: number;
        latest_run: number;
        running: boolean;
        lines: OutputLine[];
        next: number;
        has_more: boolean;
      };
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
    result: PollResult;
  };
  'claudecode.recent_dirs': {
    params: Record<string, never>;
    result: { type: 'ok'; dirs: RecentDir[] };
  };
  'claudecode.rename': {
    params: { session_id?: SessionId; name?: string; new_name: SessionName };
    result: { type: 'ok'; session_id: SessionId };
  };
  'claudecode.resumable': {
    params: { working_dir: string; limit?: number };
    result: { type: 'ok'; sessions: ResumableSession[] };
  };
  'claudecode.send': {
    params: {
      session_id?: SessionId;
      name?: string;
      prompt: string;
      expand?: boolean;
      attachments?: AttachmentGiven[];
    };
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
  'claudecode.timeline': {
    params: {
      session_id?: SessionId;
      name?: string;
      from?: number;
      to?: number;
      resolution_secs?: number;
      limit?: number;
    };
    result: {
        type: 'ok';
        from: number;
        to: number;
        now: number;
        resolution_secs: number;
        lanes: Lane[];
        more_lanes?: number;
        incomplete?: boolean;
      };
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
      title?: string;
      archived?: boolean;
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
  'host.accept_rollback': {
    params: Record<string, never>;
    result: { type: 'ok' };
  };
  'host.add': {
    params: { host: HostName; renew?: boolean };
    result: { type: 'ok'; host: HostName; url: string; password: string; local: boolean };
  };
  'host.drain': {
    params: { host: HostName };
    result: { type: 'ok'; host: HostName };
  };
  'host.list': {
    params: Record<string, never>;
    result: { type: 'ok'; hosts: HostView[] };
  };
  'host.lose': {
    params: { host: HostName; force?: boolean };
    result: { type: 'ok'; host: HostName };
  };
  'host.remove': {
    params: { host: HostName };
    result: { type: 'ok'; host: HostName };
  };
  'host.undrain': {
    params: { host: HostName };
    result: { type: 'ok'; host: HostName };
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
    params: { session_id?: SessionId; name?: string; rules: RuleGiven[] };
    result: { type: 'ok'; rules: RuleView[]; settled: ApprovalId[] };
  };
  'policy.list': {
    params: { session_id?: SessionId; name?: string };
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
    params: { session_id?: SessionId; name?: string; tool_name: string; input: Fields; cwd?: string };
    result: { type: 'ok'; outcome: Outcome; why: string; rules: RuleView[] };
  };
  'template.delete': {
    params: { name: TemplateName };
    result: { type: 'ok'; name: TemplateName };
  };
  'template.list': {
    params: Record<string, never>;
    result: { type: 'ok'; templates: TemplateView[] };
  };
  'template.save': {
    params: {
      name: TemplateName;
      prompt?: string;
      working_dir?: string;
      model?: string;
      permission_mode?: PermissionMode;
      policy?: PolicyName;
      budget?: Budget;
      isolation?: Isolation;
      mcp_servers?: { [name: string]: McpServerGiven };
    };
    result: { type: 'ok'; name: TemplateName };
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
