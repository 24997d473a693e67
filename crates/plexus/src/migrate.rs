//! `plexus migrate`: moves the state of a stopped hub from its file to a PostgreSQL database, or back. It prints the settings with which the hub finds
//! its state afterwards, and changes none.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use plexus_protocol::HostName;
use plexus_server::{DataDirError, MoveError, MoveTo, ServeError, StoreSetting, move_store};
use plexus_store::PostgresAddress;
use plexus_store::migrate::{MigrateError, Moved, Observer};
use serde::Serialize;
use tracing::level_filters::LevelFilter;

use crate::error::{ExpectedError, system};
use crate::plural::counted;
use crate::settings::{self, DataDirArg, StoreArgs, StoreUrl};
use crate::{output, serve};

/// The value of `--to` for the file.
const SQLITE: &str = "sqlite";
/// The time between two updates of the progress line.
const UPDATE_EVERY: Duration = Duration::from_millis(100);

/// Arguments of `plexus migrate`.
#[derive(Debug, Args)]
#[command(
    after_help = "No hub may run on the data directory: stop it with `plexus down`. Agents that a hub has left running continue with the next hub. \
    The old file is kept as plexus.db.moved, the old tables as a schema plexus_moved_… of the database. If the command is interrupted, run it \
    again: it finishes the migration.\n\n\
    Examples:\n  plexus migrate --to postgres://plexus@db.example/plexus --host laptop\n  plexus migrate --to sqlite"
)]
pub(crate) struct MigrateArgs {
    /// Where the state moves: the address of an empty PostgreSQL database, or `sqlite` for the file in the data directory.
    #[arg(long, value_name = "URL|sqlite")]
    to: StoreUrl,
    /// The database that has the state, for `--to sqlite` [default: the one that `plexus serve` would use].
    #[arg(long, value_name = "URL", env = "PLEXUS_STORE", hide_env_values = true)]
    from: Option<StoreUrl>,
    /// A file with the password of the database, which only you can read [default: ~/.pgpass].
    #[arg(long, env = "PLEXUS_STORE_PASSWORD_FILE", value_name = "FILE")]
    store_password_file: Option<PathBuf>,
    /// The name of this machine among the hosts that share the database [default: its host name].
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    #[command(flatten)]
    data_dir: DataDirArg,
}

/// Moves the state.
pub(crate) fn run(args: MigrateArgs) -> Result<(), ExpectedError> {
    serve::log_to_stderr(LevelFilter::WARN);
    let dir = args.data_dir.resolve()?;
    if !dir.exists() {
        return Err(ExpectedError::Refused(format!(
            "{} does not exist: there is nothing to migrate",
            dir.display()
        )));
    }
    let to = if args.to.as_str() == SQLITE { MoveTo::Sqlite } else { MoveTo::Postgres };
    let database = match to {
        MoveTo::Sqlite => args.from,
        MoveTo::Postgres => Some(args.to.clone()),
    };
    let store = StoreArgs::new(database, args.store_password_file.clone(), args.host);
    let StoreSetting::Postgres { address, host, .. } = settings::store(&dir, store)? else {
        return Err(ExpectedError::Usage("name the database that has the state with --from URL".to_owned()));
    };
    let mut progress = ProgressLine::new();
    let moved = move_store(&dir, &address, host.as_ref(), to, &mut progress);
    progress.clear();
    let (moved, host) = moved.map_err(expected)?;
    match to {
        MoveTo::Postgres => {
            let section = StoreSection::new(&args.to, &address, args.store_password_file, &host);
            report_in_database(&dir, &moved, &section)
        }
        MoveTo::Sqlite => {
            report_in_file(&dir, &moved);
            Ok(())
        }
    }
}

/// The error for the user.
fn expected(error: MoveError) -> ExpectedError {
    match error {
        MoveError::DataDir(locked @ DataDirError::Locked { .. }) => {
            ExpectedError::Refused(format!("{locked}: stop it with `plexus down` first"))
        }
        MoveError::DataDir(error) => ServeError::from(error).into(),
        MoveError::Migrate(MigrateError::Store(error)) => ServeError::from(error).into(),
        MoveError::Migrate(refused) => ExpectedError::Refused(refused.to_string()),
    }
}

/// `[store]` in `plexus.toml`.
#[derive(Debug, Serialize)]
struct StoreSection {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    password_file: Option<PathBuf>,
    host: String,
}

impl StoreSection {
    /// The section without a password, which must not get to a terminal or a log.
    fn new(
        url: &StoreUrl,
        address: &PostgresAddress,
        password_file: Option<PathBuf>,
        host: &HostName,
    ) -> Self {
        let url = (!address.has_password()).then(|| url.as_str().to_owned());
        Self { url, password_file, host: host.to_string() }
    }

    fn to_toml(&self) -> Result<String, ExpectedError> {
        let url = if self.url.is_none() { "# url = the address that you passed to --to\n" } else { "" };
        Ok(format!("[store]\n{url}{}", toml::to_string(self).map_err(system)?))
    }
}

fn report_in_database(dir: &Path, moved: &Moved, section: &StoreSection) -> Result<(), ExpectedError> {
    output::say(&format!(
        "plexus: {} to the database; the old file is kept as {}",
        outcome(moved),
        moved.old
    ));
    let file = dir.join("plexus.toml");
    output::say(&format!("plexus: write this to {}, then start the hub with `plexus up`:", file.display()));
    output::print(section.to_toml()?.trim_end());
    Ok(())
}

fn report_in_file(dir: &Path, moved: &Moved) {
    output::say(&format!(
        "plexus: {} to the file in {}; the old tables are kept as {}",
        outcome(moved),
        dir.display(),
        moved.old
    ));
    output::say(&format!(
        "plexus: remove [store] from {}, and unset PLEXUS_STORE if it is set; then start the hub with `plexus up`",
        dir.join("plexus.toml").display()
    ));
}

fn outcome(moved: &Moved) -> String {
    match moved.rows {
        Some(rows) => format!("moved {}", counted(rows, "row", "rows")),
        None => "finished an interrupted migration".to_owned(),
    }
}

/// A line on the terminal that shows the progress.
struct ProgressLine {
    is_shown: bool,
    updated: Option<Instant>,
}

impl ProgressLine {
    fn new() -> Self {
        Self { is_shown: std::io::stderr().is_terminal(), updated: None }
    }

    fn write(text: &str) {
        let mut stderr = std::io::stderr().lock();
        // A closed terminal is not an error.
        let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
    }

    fn clear(&self) {
        if self.updated.is_some() {
            Self::write("");
        }
    }
}

impl Observer for ProgressLine {
    fn progress(&mut self, done: u64, total: u64) {
        if !self.is_shown || self.updated.is_some_and(|updated| updated.elapsed() < UPDATE_EVERY) {
            return;
        }
        self.updated = Some(Instant::now());
        let percent = (done * 100).checked_div(total).unwrap_or(100);
        Self::write(&format!("plexus: {done} of {total} rows ({percent} %)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(url: &str, file: Option<&str>) -> String {
        let address = PostgresAddress::parse(url).unwrap();
        let host = HostName::try_from("laptop".to_owned()).unwrap();
        let url = StoreUrl::from(url.to_owned());
        StoreSection::new(&url, &address, file.map(PathBuf::from), &host).to_toml().unwrap()
    }

    #[test]
    fn the_settings_are_printed_without_a_password() {
        let shown =
            section("postgres://plexus@db.example/plexus?sslmode=verify-full", Some("/data/password"));
        assert_eq!(
            shown,
            "[store]\nurl = \"postgres://plexus@db.example/plexus?sslmode=verify-full\"\n\
             password_file = \"/data/password\"\nhost = \"laptop\"\n"
        );
        let shown = section("postgres://plexus:A-SECRET@db.example/plexus", None);
        assert_eq!(shown, "[store]\n# url = the address that you passed to --to\nhost = \"laptop\"\n");
    }
}
