//! Finds the program that listens on a local port, to explain why a hub cannot. It asks the port whether it is a hub, because a hub
//! hides its descriptors, and looks in `/proc` for the other processes of this user.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::settings::DataDirArg;
use crate::terminal::one_line;
use crate::up;

/// How long a hub may take to say that it is one.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);
const MAX_ANSWER_BYTES: u64 = 16 * 1024;
/// The state of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// The program that uses a port.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PortUser {
    /// A hub of Plexus.
    Hub {
        version: String,
        /// Its data directory, if that is the default one.
        dir: Option<PathBuf>,
    },
    /// A process of this user.
    Process { pid: u32, name: String },
    /// A process of another user, or one that exited meanwhile.
    Unknown,
}

impl PortUser {
    /// The program that listens on this address.
    pub(crate) async fn of(address: SocketAddr) -> Self {
        if let Ok(Some(version)) = tokio::time::timeout(ANSWERED_WITHIN, hub_version(address)).await {
            let default = DataDirArg::default().resolve().ok();
            return Self::Hub { version, dir: default.filter(|dir| listens(dir, address)) };
        }
        process(address).unwrap_or(Self::Unknown)
    }
}

impl fmt::Display for PortUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hub { version, dir: None } => write!(f, "a Plexus hub (version {version})"),
            Self::Hub { version, dir: Some(dir) } => write!(
                f,
                "the hub in {0} (version {version}; `plexus down --data-dir {0}` stops it)",
                dir.display()
            ),
            Self::Process { pid, name } => write!(f, "process {pid} ({})", one_line(name, 60)),
            Self::Unknown => f.write_str("a process of another user, or one that has exited"),
        }
    }
}

async fn hub_version(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.take(MAX_ANSWER_BYTES).read_to_string(&mut answer).await.ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let health: Value = serde_json::from_str(body).ok()?;
    Some(one_line(health["version"].as_str()?, 40))
}

/// Whether the hub in this directory announced this address.
fn listens(dir: &Path, address: SocketAddr) -> bool {
    up::announced(dir)["url"].as_str() == Some(&format!("http://{address}"))
}

fn process(address: SocketAddr) -> Option<PortUser> {
    let table = match address.ip() {
        IpAddr::V4(_) => "/proc/net/tcp",
        IpAddr::V6(_) => "/proc/net/tcp6",
    };
    let inode = inode(&std::fs::read_to_string(table).ok()?, address.port())?;
    let wanted = format!("socket:[{inode}]");
    let has_socket = |process: &Path| {
        let descriptors = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        descriptors
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .any(|link| link == Path::new(&wanted))
    };
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let numbered =
        processes.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())));
    let (pid, path) = numbered.into_iter().find(|(_, path)| has_socket(path))?;
    let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
    Some(PortUser::Process { pid, name: name.trim_end().to_owned() })
}

/// The inode of the socket that listens on this port, from the text of `/proc/net/tcp`.
fn inode(table: &str, port: u16) -> Option<u64> {
    let end = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        (local.ends_with(&end) && *state == LISTEN).then(|| inode.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listening_socket_is_found_by_its_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:115D 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 41 1\n   \
            1: 0100007F:115D 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 42 1\n";
        assert_eq!(inode(table, 4445), Some(42));
        assert_eq!(inode(table, 4446), None);
    }

    #[tokio::test]
    async fn a_process_of_this_user_is_named() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let found = process(taken.local_addr().unwrap());
        assert!(
            matches!(found, Some(PortUser::Process { pid, .. }) if pid == std::process::id()),
            "{found:?}"
        );
    }
}
