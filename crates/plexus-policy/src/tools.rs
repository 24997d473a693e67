//! Claude Code's tools, as far as rules tell them apart: which belong together, what their specifier means, and which
//! field of the input it is about. Every tool of the supported versions is listed here; `input` looks into the input of the
//! others, and of those that neither run commands nor open files by themselves.

use crate::wildcard::name_matches;

/// Tools that one kind of path rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Family {
    Read,
    Edit,
}

/// What a tool does, as far as rules tell tools apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolClass {
    /// It runs a command line in the user's shell, like Bash. The line is in the field `command`.
    Shell,
    /// It runs a program in another language. The program is in this field.
    Program(&'static str),
    /// It shows files.
    Reads,
    /// It changes files.
    Edits,
    /// It fetches a URL.
    Fetches,
    /// It starts a sub-agent or a skill, whose own calls stop at the gate.
    Starts,
    /// It does none of these by itself. Its input is searched for command lines, files and URLs all the same.
    Other,
}

/// Tools of class [`ToolClass::Other`]: they talk, plan, schedule or look something up.
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

/// The class of a tool of the supported versions of Claude Code; `None` for all others, and for the tools of MCP servers.
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

/// Whether a tool is one of the hub's own. No other server has its name: the hub says which there are, and checks who calls.
pub fn is_hub_tool(tool: &str) -> bool {
    tool.strip_prefix("mcp__plexus__").is_some_and(|tool| !tool.contains("__"))
}

/// What stands in the parentheses behind a tool's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Command,
    Path(Family),
    Domain,
    Name,
    Nothing,
}

/// What the specifier of this tool means.
pub(crate) fn takes(tool: &str) -> Takes {
    match class_of(tool) {
        Some(ToolClass::Shell | ToolClass::Program("command")) => Takes::Command,
        Some(ToolClass::Reads) => Takes::Path(Family::Read),
        Some(ToolClass::Edits) => Takes::Path(Family::Edit),
        Some(ToolClass::Fetches) => Takes::Domain,
        Some(ToolClass::Starts) => Takes::Name,
        Some(ToolClass::Program(_) | ToolClass::Other) | None => Takes::Nothing,
    }
}

/// Whether a rule that names a tool and nothing else covers this tool.
pub(crate) fn covers(rule: &str, tool: &str) -> bool {
    if rule.contains('*') {
        return name_matches(rule, tool);
    }
    same(rule, tool)
        || matches!(
            (rule, takes(tool)),
            ("Edit", Takes::Path(Family::Edit)) | ("Read", Takes::Path(Family::Read))
        )
        || rule.starts_with("mcp__") && tool.strip_prefix(rule).is_some_and(|rest| rest.starts_with("__"))
}

/// The same for a rule that denies or asks: `Bash` restricts every tool that runs commands. It allows Bash alone, because
/// the others run longer, elsewhere or in another language.
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

/// Whether two names are one tool's.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a == b || matches!((a, b), ("Agent", "Task") | ("Task", "Agent"))
}

/// The field of the input that a path rule is about; a tool without one is not about files.
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

/// What a tool's path names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PathField {
    /// One file.
    File(&'static str),
    /// A folder, by default the working directory, all of which is searched.
    Search { path: &'static str, pattern: Option<&'static str>, shows: Shows },
}

/// What a search tells of the files it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    Names,
    Contents,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hubs_own_tools_are_taken_for_them() {
        assert!(is_hub_tool("mcp__plexus__claudecode_create"));
        for other in
            ["mcp__plexus2__x", "mcp__plexus__evil__x", "plexus__x", "Bash", "mcp__other__mcp__plexus__x"]
        {
            assert!(!is_hub_tool(other), "{other}");
        }
    }
}
