//! Claude Code's tools, as far as rules distinguish them: their families, the meaning of their specifiers, and the
//! input field that a specifier refers to. This module lists every tool of the supported versions. `input` searches the
//! input of other tools, and of tools that neither run commands nor open files by themselves.

use crate::wildcard::name_matches;

/// The tools that one kind of path rule covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Family {
    Read,
    Edit,
}

/// What a tool does, as far as rules distinguish tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolClass {
    /// Runs a command line in the user's shell, like Bash. The line is in the field `command`.
    Shell,
    /// Runs a program in another language. The program is in this field.
    Program(&'static str),
    /// Reads files.
    Reads,
    /// Changes files.
    Edits,
    /// Fetches a URL.
    Fetches,
    /// Starts a sub-agent or a skill, whose own calls stop at the gate.
    Starts,
    /// None of these. Its input is still searched for command lines, files and URLs.
    Other,
}

/// Tools of class [`ToolClass::Other`], which communicate, plan, schedule or look up information.
const OTHER: &[&str] = &[
    "Artifact",
    "ArtifactCheck",
    "ArtifactComments",
    "ArtifactData",
    "AskUserQuestion",
    "BashOutput",
    "Brief",
    "ClaudeDesign",
    "CronCreate",
    "CronDelete",
    "CronList",
    "DesignSync",
    "EndConversation",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "FetchInboxMessage",
    "GetTask",
    "KillBash",
    "KillShell",
    "LSP",
    "ListAgents",
    "ListConnectors",
    "ListMcpResources",
    "ListMcpResourcesTool",
    "ListPeers",
    "ListProjectAgents",
    "ObserverReport",
    "OfferChromeSetup",
    "Poll",
    "Projects",
    "ProposeGoal",
    "PublishPlugin",
    "PushNotification",
    "ReadMcpResource",
    "ReadMcpResourceDir",
    "ReadMcpResourceDirTool",
    "ReadMcpResourceTool",
    "ReadNotifications",
    "ReadWidgetContext",
    "RemoteTrigger",
    "ReportFindings",
    "ScheduleWakeup",
    "SearchMcpRegistry",
    "SendFeedback",
    "SendFile",
    "SendMessage",
    "SendToProject",
    "SendToProjectContext",
    "SendUserFile",
    "SendUserMessage",
    "ShareOnboardingGuide",
    "ShowOnboardingRolePicker",
    "StageFile",
    "StructuredOutput",
    "SubagentHandback",
    "SuggestConnectors",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TestingPermission",
    "TodoWrite",
    "ToolSearch",
    "WaitForMcpServers",
    "WebSearch",
    "WrapUp",
    "Yield",
    "propose_skills",
    "request_computer",
    "self_hosted_runner_get_pool",
    "self_hosted_runner_list_runners",
    "self_hosted_runner_list_secrets",
    "self_hosted_runner_list_sessions",
    "self_hosted_runner_read_health",
    "self_hosted_runner_read_metrics",
    "self_hosted_runner_requeue_session",
    "self_hosted_runner_spawn_local",
    "self_hosted_runner_tail_log",
];

/// The tools of the other classes.
const CLASSIFIED: &[&str] = &[
    "Agent",
    "AppifactRepl",
    "Bash",
    "Edit",
    "Eval",
    "Glob",
    "Grep",
    "LS",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "PowerShell",
    "REPL",
    "Read",
    "RunWorkflow",
    "Skill",
    "Task",
    "WebFetch",
    "Workflow",
    "Write",
];

/// The names of all tools of the supported versions of Claude Code.
pub fn known_tools() -> impl Iterator<Item = &'static str> {
    CLASSIFIED.iter().chain(OTHER).copied()
}

/// The class of a tool of the supported versions of Claude Code; `None` for all other tools, including those of MCP
/// servers.
pub fn class_of(tool: &str) -> Option<ToolClass> {
    Some(match tool {
        "Bash" | "Monitor" => ToolClass::Shell,
        "PowerShell" => ToolClass::Program("command"),
        "REPL" | "Eval" | "AppifactRepl" => ToolClass::Program("code"),
        "Workflow" | "RunWorkflow" => ToolClass::Program("script"),
        "Read" | "Glob" | "Grep" | "LS" | "NotebookRead" => ToolClass::Reads,
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => ToolClass::Edits,
        "WebFetch" => ToolClass::Fetches,
        "Agent" | "Task" | "Skill" => ToolClass::Starts,
        _ if OTHER.contains(&tool) => ToolClass::Other,
        _ => return None,
    })
}

/// Whether a tool is one of the hub's own. No other server can have that name: the hub defines which servers exist, and
/// checks the caller.
pub fn is_hub_tool(tool: &str) -> bool {
    tool.strip_prefix("mcp__plexus__").is_some_and(|tool| !tool.contains("__"))
}

/// What the parentheses after a tool's name contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpecifierKind {
    Command,
    Path(Family),
    Domain,
    Name,
    Nothing,
}

/// The kind of specifier that this tool takes.
pub(crate) fn specifier_kind(tool: &str) -> SpecifierKind {
    match class_of(tool) {
        Some(ToolClass::Shell | ToolClass::Program("command")) => SpecifierKind::Command,
        Some(ToolClass::Reads) => SpecifierKind::Path(Family::Read),
        Some(ToolClass::Edits) => SpecifierKind::Path(Family::Edit),
        Some(ToolClass::Fetches) => SpecifierKind::Domain,
        Some(ToolClass::Starts) => SpecifierKind::Name,
        Some(ToolClass::Program(_) | ToolClass::Other) | None => SpecifierKind::Nothing,
    }
}

/// Whether a rule that consists of a tool name covers this tool.
pub(crate) fn covers(rule: &str, tool: &str) -> bool {
    if rule.contains('*') {
        return name_matches(rule, tool);
    }
    same(rule, tool)
        || matches!(
            (rule, specifier_kind(tool)),
            ("Edit", SpecifierKind::Path(Family::Edit)) | ("Read", SpecifierKind::Path(Family::Read))
        )
        || rule.starts_with("mcp__") && tool.strip_prefix(rule).is_some_and(|rest| rest.starts_with("__"))
}

/// The same for a rule that denies or asks: `Bash` restricts every tool that runs commands. As an allow rule it covers
/// only Bash, because the other tools run longer, elsewhere or in another language.
pub(crate) fn restricts(rule: &str, tool: &str) -> bool {
    covers(rule, tool) || rule == "Bash" && runs_commands(tool)
}

/// Whether the command rules of one tool restrict the calls of another.
pub(crate) fn command_restricts(rule: &str, tool: &str) -> bool {
    rule == "Bash" || same(rule, tool)
}

fn runs_commands(tool: &str) -> bool {
    matches!(class_of(tool), Some(ToolClass::Shell | ToolClass::Program(_)))
}

/// Whether two names denote the same tool.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a == b || matches!((a, b), ("Agent", "Task") | ("Task", "Agent"))
}

/// The input field that a path rule refers to; `None` for a tool that does not act on files.
pub(crate) fn path_field(tool: &str) -> Option<PathField> {
    match tool {
        "Read" | "Edit" | "Write" | "MultiEdit" => Some(PathField::File("file_path")),
        "NotebookEdit" | "NotebookRead" => Some(PathField::File("notebook_path")),
        "Glob" => Some(PathField::Search { path: "path", pattern: Some("pattern"), shows: Shows::Names }),
        "Grep" => Some(PathField::Search { path: "path", pattern: None, shows: Shows::Contents }),
        "LS" => Some(PathField::Search { path: "path", pattern: None, shows: Shows::Names }),
        _ => None,
    }
}

/// What a tool's path denotes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PathField {
    /// One file.
    File(&'static str),
    /// A folder to search recursively, by default the working directory.
    Search { path: &'static str, pattern: Option<&'static str>, shows: Shows },
}

/// What a search reveals about the files it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    Names,
    Contents,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_tool_has_a_class() {
        for tool in CLASSIFIED {
            assert!(class_of(tool).is_some_and(|class| class != ToolClass::Other), "{tool}");
        }
        assert!(known_tools().all(|tool| class_of(tool).is_some()));
    }

    #[test]
    fn only_the_hubs_own_tools_count_as_hub_tools() {
        assert!(is_hub_tool("mcp__plexus__claudecode_create"));
        for other in
            ["mcp__plexus2__x", "mcp__plexus__evil__x", "plexus__x", "Bash", "mcp__other__mcp__plexus__x"]
        {
            assert!(!is_hub_tool(other), "{other}");
        }
    }
}
