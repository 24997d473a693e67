//! The tools of the scripted agent, which really act, and the log of the calls that ran with their inputs.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Pid;
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde_json::{Value, json};

use crate::call::Released;
use crate::host::Host;

/// The tools in `system/init`.
pub(crate) const TOOLS: [&str; 6] = ["AskUserQuestion", "Bash", "Edit", "ExitPlanMode", "Read", "Write"];

/// The output of a tool, or its error.
pub(crate) type Output = Result<String, String>;

/// Logs the call, then runs it.
pub(crate) fn run(host: &Host, id: &str, tool: &str, released: &Released) -> Output {
    let Released { input, requested_at, at } = released;
    let entry =
        json!({"tool_use_id":id,"tool":tool,"input":input,"requested_at_ns":nanoseconds(*requested_at)});
    append(entry, *at)?;
    let text = |field: &str| input.get(field).and_then(Value::as_str).ok_or(format!("{tool}: no `{field}`"));
    let path = |field: &str| text(field).map(|path| host.launch.cwd.join(path));
    match tool {
        "Bash" => bash(host, text("command")?),
        "Write" => write(path("file_path")?, text("content")?),
        "Edit" => edit(path("file_path")?, text("old_string")?, text("new_string")?),
        "Read" => {
            let path = path("file_path")?;
            std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        }
        _ => Ok(Value::Object(input.clone()).to_string()),
    }
}

/// Logs that a replay starts now.
pub(crate) fn note_replay(path: &Path) -> Result<(), String> {
    append(json!({"replay":path}), clock_gettime(ClockId::Monotonic))
}

fn append(mut entry: Value, at: Timespec) -> Result<(), String> {
    let Some(path) = std::env::var_os("SCRIPTED_AGENT_LOG") else { return Ok(()) };
    entry["at_ns"] = json!(nanoseconds(at));
    let line = format!("{entry}\n");
    // One write in append mode, so that agents that share the file never mix their lines.
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .map_err(|error| format!("SCRIPTED_AGENT_LOG: {error}"))
}

fn nanoseconds(at: Timespec) -> i64 {
    at.tv_sec * 1_000_000_000 + at.tv_nsec
}

fn write(path: PathBuf, content: &str) -> Output {
    std::fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(format!("File created successfully at: {}", path.display()))
}

fn edit(path: PathBuf, old: &str, new: &str) -> Output {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let content = std::fs::read_to_string(&path).map_err(failed)?;
    if content.matches(old).count() != 1 {
        return Err(format!("{}: the text to replace does not occur exactly once", path.display()));
    }
    std::fs::write(&path, content.replacen(old, new, 1)).map_err(failed)?;
    Ok(format!("The file {} has been updated.", path.display()))
}

fn bash(host: &Host, command: &str) -> Output {
    let child = Command::new("sh")
        .args(["-c", command])
        .current_dir(&host.launch.cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Its own process group, as with the real CLI, so that an interrupt ends the whole command.
        .process_group(0)
        .spawn()
        .map_err(|error| format!("sh: {error}"))?;
    let group = Pid::from_child(&child);
    host.command_started(group);
    let output = child.wait_with_output();
    host.command_ended(group);
    let output = output.map_err(|error| format!("sh: {error}"))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    let text = text.trim_end();
    match output.status.code() {
        Some(0) => Ok(text.to_owned()),
        Some(code) => Err(format!("Exit code {code}\n{text}")),
        None => Err(format!("The command was interrupted\n{text}")),
    }
}
