//! Reads `/proc`; no other module does. It returns facts about one moment. A caller that acts on a pid must hold a
//! pidfd or be the parent, so that the pid cannot belong to another process by then.

use std::fs;
use std::io;

/// The fields of `/proc/PID/stat` that this crate uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: State,
    pub(crate) parent: i32,
    /// Clock ticks after boot. Together with the boot id it identifies a process permanently; a pid alone does not.
    pub(crate) start_time: u64,
}

/// Whether a process can still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Alive,
    /// A zombie, or about to become one: only its exit status remains.
    Dead,
}

/// Reads `/proc/PID/stat`; `NotFound` if the process does not exist.
pub(crate) fn stat(pid: i32) -> io::Result<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).map_err(gone)?;
    parse_stat(&String::from_utf8_lossy(&text))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("cannot parse /proc/{pid}/stat")))
}

/// The command name in the second field may contain blanks and parentheses, so fields are counted from the last `)`.
fn parse_stat(text: &str) -> Option<Stat> {
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = match fields.next()? {
        "Z" | "X" | "x" => State::Dead,
        _ => State::Alive,
    };
    let parent = fields.next()?.parse().ok()?;
    // Field 22 of the file; the state is field 3.
    let start_time = fields.nth(17)?.parse().ok()?;
    Some(Stat { state, parent, start_time })
}

/// Identifies the current boot. Pids and start times of another boot are meaningless.
pub(crate) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// The pids of all processes.
pub(crate) fn pids() -> io::Result<impl Iterator<Item = i32>> {
    Ok(fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
}

/// The children of a process. May miss a child that starts or exits meanwhile; callers repeat until none is left.
pub(crate) fn children(of: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let mut lists = threads.map(|thread| fs::read_to_string(thread.path().join("children"))).peekable();
    if let Some(Err(error)) = lists.peek()
        && error.kind() == io::ErrorKind::NotFound
        && stat(of).is_ok()
    {
        // The kernel lacks CONFIG_PROC_CHILDREN, so examine every process.
        let all = pids().into_iter().flatten();
        return all.filter(|&pid| stat(pid).is_ok_and(|stat| stat.parent == of)).collect();
    }
    let pids = |list: String| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    lists.flatten().flat_map(|list| -> Vec<i32> { pids(list) }).collect()
}

/// Whether the process was started with `variable` (`NAME=value`) in its environment. False if the environment cannot
/// be read (another user's process, or one that has ended).
pub(crate) fn environment_holds(pid: i32, variable: &[u8]) -> bool {
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environment| environment.split(|&byte| byte == 0).any(|entry| entry == variable))
}

/// Reading the file of a process that exits meanwhile fails with ESRCH instead of ENOENT.
fn gone(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) {
        return io::ErrorKind::NotFound.into();
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_cannot_forge_the_fields_after_it() {
        let rest: String = (5..=21).map(|field| format!(" {field}")).collect();
        let text = format!("7 (a) Z 1 (b) S 42{rest} 4711 23 24\n");
        assert_eq!(parse_stat(&text), Some(Stat { state: State::Alive, parent: 42, start_time: 4711 }));
    }

    #[test]
    fn an_invalid_stat_line_is_not_parsed() {
        for text in ["", "7", "7 (x)", "7 (x) S", "7 (x) S 1 2 3"] {
            assert_eq!(parse_stat(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_process_finds_itself_and_its_parent() {
        let own = std::process::id() as i32;
        assert!(pids().unwrap().any(|pid| pid == own));
        assert_eq!(stat(own).unwrap().parent, rustix::process::getppid().unwrap().as_raw_pid());
    }
}
