//! Describes the machine and the programs of a run, so that a reader of the results knows what was measured.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::bench_dir;
use crate::report::root;

/// The hardware and the kernel.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: f64,
    pub(crate) kernel: String,
    /// The file system and the device of the data directories.
    #[serde(default)]
    pub(crate) disk: String,
    #[serde(default)]
    pub(crate) compiler: String,
    /// When the report was created, in seconds since 1970.
    pub(crate) at: u64,
}

impl Machine {
    pub(crate) fn this() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let kib: f64 = memory.split(' ').next().and_then(|kib| kib.parse().ok()).unwrap_or_default();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self {
            processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
            memory_gib: (kib / 1024.0 / 1024.0 * 10.0).round() / 10.0,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            disk: bench_dir::on_a_disk()
                .ok()
                .and_then(|dir| disk_of(dir.path(), &read("/proc/self/mounts")))
                .unwrap_or_default(),
            compiler: output("rustc", &["--version"]).unwrap_or_default(),
            at: now.as_secs(),
        }
    }
}

/// The version of Plexus: the commit of the checkout, with a mark if files other than results were changed.
pub(crate) fn plexus_version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let results = [":!bench/results", ":!docs/benchmarks", ":!docs/benchmarks.md"];
    let commit = git(&["rev-parse", "--short", "HEAD"]);
    let changed = git(&[&["status", "--porcelain", "--", ":/"], results.as_slice()].concat());
    match (commit, changed.as_deref()) {
        (Some(commit), Some("")) => format!("{version} ({commit})"),
        (Some(commit), _) => format!("{version} ({commit}-dirty)"),
        (None, _) => version.to_owned(),
    }
}

/// The file system that contains a path, from the list of mounts: the mount with the longest path.
fn disk_of(path: &Path, mounts: &str) -> Option<String> {
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let holding = fields.filter(|mount| mount.len() > 2 && path.starts_with(mount[1]));
    let mount = holding.max_by_key(|mount| mount[1].len())?;
    Some(format!("{} on {}", mount[2], mount[0]))
}

/// The output of a git command.
fn git(args: &[&str]) -> Option<String> {
    output("git", args)
}

/// The output of a command in the root directory of the checkout.
fn output(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).current_dir(root()).args(args).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_holds_the_path() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /home xfs rw 0 0\n";
        assert_eq!(disk_of(Path::new("/home/x"), mounts).as_deref(), Some("xfs on /dev/b"));
        assert_eq!(disk_of(Path::new("/homes"), mounts).as_deref(), Some("ext4 on /dev/a"));
    }
}
