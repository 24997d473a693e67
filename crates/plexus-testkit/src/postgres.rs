//! A real PostgreSQL server for tests. It listens on a socket in a directory of its own, and on 127.0.0.1 if it has a certificate. It runs as a user without
//! rights, and ends with the process that has started it. `failures` kills, restarts and replaces servers.

mod failures;

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{OpenOptionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, ensure};

use crate::authority::Authority;

/// The user that runs the server if the test runs as root, which PostgreSQL refuses.
const NOBODY: u32 = 65_534;

/// Creates a server, reports that it is ready, and removes it at the end of the input, which is the end of the test's process. `$1` is the directory of
/// the programs, `$2` that of the server, `$3` its options. A standby copies the server whose directory is `$4` and whose port is `$5`.
const SERVER: &str = r#"
if [ -z "$4" ]; then
    "$1/initdb" --pgdata="$2/data" --username=plexus --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync >"$2/log" 2>&1
else
    "$1/pg_basebackup" --pgdata="$2/data" --host="$4" --port="$5" --username=plexus --checkpoint=fast --write-recovery-conf --no-sync >"$2/log" 2>&1
fi &&
    "$1/pg_ctl" start --wait --silent --pgdata="$2/data" --log="$2/log" --options="$3" &&
    echo ready || echo failed
read -r _
"$1/pg_ctl" stop --mode=immediate --silent --pgdata="$2/data" >/dev/null 2>&1
rm -rf "$2"
"#;

/// Who may connect to a server with a certificate: over its socket everybody, over TCP users with a password, and `certified` with a certificate.
const ACCESS: &str =
    "local all all trust\nhostssl all certified 127.0.0.1/32 cert\nhost all all 127.0.0.1/32 scram-sha-256\n";

const DEFAULT_PORT: u16 = 5432;

/// A running server.
pub struct Postgres {
    programs: PathBuf,
    dir: PathBuf,
    port: u16,
    options: String,
    databases: AtomicU64,
    /// The end of its input stops the server.
    _server: Child,
}

impl Postgres {
    /// The server that all tests of this process share; `None` if PostgreSQL is not installed.
    ///
    /// # Panics
    /// If it is installed and cannot be started.
    pub fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<Postgres>> = OnceLock::new();
        #[expect(clippy::unwrap_used, reason = "a test must not go on without it")]
        let server = SERVER.get_or_init(|| {
            programs().map(|programs| Self::start(programs, DEFAULT_PORT, Kind::Local).unwrap())
        });
        server.as_ref()
    }

    /// Starts a server that waits for its disk, as in production; `None` if PostgreSQL is not installed.
    ///
    /// # Errors
    /// If it is installed and cannot be started.
    pub fn durable() -> anyhow::Result<Option<Self>> {
        programs().map(|programs| Self::start(programs, DEFAULT_PORT, Kind::Durable)).transpose()
    }

    /// Starts a server that also listens on a port of 127.0.0.1, with TLS and passwords; `None` if PostgreSQL is not installed. Its certificate is for `host`, and
    /// certificates of clients must be from the same authority.
    ///
    /// # Errors
    /// If it is installed and cannot be started.
    pub fn with_certificate(authority: &Authority, host: &str) -> anyhow::Result<Option<Self>> {
        let Some(programs) = programs() else { return Ok(None) };
        let mut last = None;
        // Another process may take the port before the server does.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            match Self::start(programs.clone(), port, Kind::Certified(authority, host)) {
                Ok(server) => return Ok(Some(server)),
                Err(error) => last = Some(error),
            }
        }
        last.map_or(Ok(None), Err)
    }

    fn start(programs: PathBuf, port: u16, kind: Kind<'_>) -> anyhow::Result<Self> {
        let dir = std::env::temp_dir().join(format!("plexus-postgres-{}", uuid::Uuid::new_v4().simple()));
        std::fs::create_dir(&dir)?;
        let (copied, copied_port) = match kind {
            Kind::Standby(of) => (of.dir.clone(), of.port.to_string()),
            Kind::Local | Kind::Durable | Kind::Certified(..) => (PathBuf::new(), String::new()),
        };
        let options = match kind {
            Kind::Local | Kind::Durable | Kind::Standby(_) => "-c listen_addresses=".to_owned(),
            Kind::Certified(authority, host) => {
                let issued = authority.server(host)?;
                write_private(&dir.join("server.crt"), &issued.certificate)?;
                write_private(&dir.join("server.key"), &issued.key)?;
                write_private(&dir.join("clients.crt"), &authority.pem())?;
                write_private(&dir.join("access"), ACCESS)?;
                let dir = dir.display();
                format!(
                    "-c listen_addresses=127.0.0.1 -c port={port} -c hba_file='{dir}/access' -c ssl=on -c ssl_cert_file='{dir}/server.crt' \
                     -c ssl_key_file='{dir}/server.key' -c ssl_ca_file='{dir}/clients.crt'"
                )
            }
        };
        // Tests kill processes, not the machine.
        let fsync = if matches!(kind, Kind::Durable) { "on" } else { "off" };
        let options = format!(
            "-c unix_socket_directories='{}' -c fsync={fsync} -c max_connections=500 {options}",
            dir.display()
        );
        if rustix::process::geteuid().is_root() {
            chown(&dir, Some(NOBODY), Some(NOBODY))?;
        }
        let mut server = unprivileged(Path::new("/bin/sh"), &dir);
        server.args(["-c", SERVER, "server"]).arg(&programs).arg(&dir).arg(&options);
        server.arg(copied).arg(copied_port);
        // A signal from the terminal must not end it before it has removed the server.
        server.process_group(0).stderr(Stdio::null());
        let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut first_line = String::new();
        BufReader::new(server.stdout.take().context("its output")?).read_line(&mut first_line)?;
        let log = || std::fs::read_to_string(dir.join("log")).unwrap_or_default();
        ensure!(first_line == "ready\n", "PostgreSQL does not start: {}", log());
        Ok(Self { programs, dir, port, options, databases: AtomicU64::new(0), _server: server })
    }

    /// Creates an empty database and returns its name.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn database(&self) -> anyhow::Result<String> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("CREATE DATABASE {name}"))?;
        Ok(name)
    }

    /// The address of a database.
    pub fn url(&self, database: &str) -> String {
        format!("{}&port={}", url(&self.dir, database), self.port)
    }

    /// The port of the server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The socket of the server.
    pub fn socket(&self) -> PathBuf {
        self.dir.join(format!(".s.PGSQL.{}", self.port))
    }

    /// Dumps a database to a file, as a backup does.
    ///
    /// # Errors
    /// If `pg_dump` fails.
    pub fn dump(&self, database: &str, file: &Path) -> anyhow::Result<()> {
        self.run("pg_dump", &["--format=custom", "--dbname", database, "--file"], file)
    }

    /// Restores a dump into an empty database.
    ///
    /// # Errors
    /// If `pg_restore` fails.
    pub fn restore(&self, file: &Path, database: &str) -> anyhow::Result<()> {
        self.run("pg_restore", &["--exit-on-error", "--dbname", database], file)
    }

    fn run(&self, program: &str, args: &[&str], file: &Path) -> anyhow::Result<()> {
        let mut command = Command::new(self.programs.join(program));
        command.env_clear().arg("--host").arg(&self.dir).args(["--port", &self.port.to_string()]);
        let output = command.arg("--username=plexus").args(args).arg(file).output()?;
        ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Executes SQL in a database, as the owner of the server. Returns what it prints.
    ///
    /// # Errors
    /// If a statement fails.
    pub fn psql(&self, database: &str, sql: &str) -> anyhow::Result<String> {
        self.psql_as("plexus", database, sql)
    }

    /// Executes SQL in a database, as this role. Returns what it prints.
    ///
    /// # Errors
    /// If a statement fails.
    pub fn psql_as(&self, role: &str, database: &str, sql: &str) -> anyhow::Result<String> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.env_clear().arg("--host").arg(&self.dir).args(["--port", &self.port.to_string()]);
        psql.args(["--username", role, "--no-psqlrc", "--quiet"]);
        psql.args([
            "--tuples-only",
            "--no-align",
            "--set=ON_ERROR_STOP=1",
            "--dbname",
            database,
            "--command",
            sql,
        ]);
        let output = psql.output()?;
        ensure!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }
}

/// What a server is started for.
#[derive(Clone, Copy)]
enum Kind<'a> {
    /// Clients on this machine.
    Local,
    /// The same, and every commit is on the disk.
    Durable,
    /// Clients that use TLS. The certificate is of this authority, for this host.
    Certified(&'a Authority, &'a str),
    /// A copy of this server, which receives what that one commits.
    Standby(&'a Postgres),
}

/// A program that runs as the user of the server.
fn unprivileged(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/bin:/bin").current_dir(dir);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Writes a file that only the server can read.
fn write_private(path: &Path, content: &str) -> anyhow::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content.as_bytes())?;
    if rustix::process::geteuid().is_root() {
        chown(path, Some(NOBODY), Some(NOBODY))?;
    }
    Ok(())
}

/// The name of the socket in the directory that an address names.
pub const SOCKET: &str = ".s.PGSQL.5432";

/// The address of a database of the server whose socket is in this directory.
pub fn url(dir: &Path, database: &str) -> String {
    format!("postgres://plexus@/{database}?host={}", dir.display())
}

/// The programs of the newest installed version. Debian does not put them on the path.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut versions: Vec<PathBuf> =
        versions.filter_map(|version| Some(version.ok()?.path().join("bin"))).collect();
    versions.retain(|programs| programs.join("initdb").exists());
    versions.sort_by_key(|programs| version_of(programs));
    versions.pop()
}

fn version_of(programs: &Path) -> u32 {
    let version = programs.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}
