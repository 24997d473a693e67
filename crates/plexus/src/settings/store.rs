//! `[store]`: where the hub stores its state.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use clap::Args;
use plexus_protocol::{HostLabel, HostName};
use plexus_server::StoreSetting;
use plexus_store::{Capacity, PostgresAddress};
use serde::Deserialize;

use crate::error::ExpectedError;

/// Where the hub stores its state.
#[derive(Debug, Default, Args)]
pub(crate) struct StoreArgs {
    /// Store the state in this PostgreSQL database, which hubs of other hosts can share, such as
    /// postgres://plexus@db.example/plexus [default: a file in the data directory].
    #[arg(long, env = "PLEXUS_STORE", value_name = "URL", hide_env_values = true)]
    store: Option<StoreUrl>,
    /// A file with the password of the database, which only you can read [default: ~/.pgpass].
    #[arg(long, env = "PLEXUS_STORE_PASSWORD_FILE", value_name = "FILE")]
    store_password_file: Option<PathBuf>,
    /// The name of this machine among the hosts that share the database [default: its host name].
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// A label of this machine, such as gpu or team=a, for `plexus run --label`; may be repeated.
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// How many sessions may work on this machine at a time; 0 for none [default: no limit].
    #[arg(long, value_name = "N")]
    slots: Option<u64>,
}

impl StoreArgs {
    /// The arguments of a `plexus serve` with these flags.
    pub(crate) fn new(store: Option<StoreUrl>, password_file: Option<PathBuf>, host: Option<String>) -> Self {
        Self { store, store_password_file: password_file, host, ..Self::default() }
    }

    /// The arguments of a `plexus serve` without flags.
    pub(crate) fn from_environment() -> Self {
        let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            store: given("PLEXUS_STORE").and_then(|url| url.into_string().ok()).map(StoreUrl),
            store_password_file: given("PLEXUS_STORE_PASSWORD_FILE").map(PathBuf::from),
            ..Self::default()
        }
    }
}

/// The address of a database. Its debug output is hidden, because it may contain a password.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct StoreUrl(String);

impl StoreUrl {
    /// The address, which may contain a password.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for StoreUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("StoreUrl(_)")
    }
}

/// `[store]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StoreTable {
    url: Option<StoreUrl>,
    password_file: Option<PathBuf>,
    host: Option<String>,
    labels: Vec<String>,
    slots: Option<u64>,
}

impl StoreTable {
    /// The setting. Arguments override the file. `pgpass` is the user's password file for libpq.
    pub(super) fn setting(
        self,
        args: StoreArgs,
        pgpass: Option<PathBuf>,
    ) -> Result<StoreSetting, ExpectedError> {
        let (url, host) = (args.store.or(self.url), args.host.or(self.host));
        let labels = if args.labels.is_empty() { self.labels } else { args.labels };
        let slots = args.slots.or(self.slots);
        let Some(StoreUrl(url)) = url else {
            if host.is_none() && labels.is_empty() && slots.is_none() {
                return Ok(StoreSetting::File);
            }
            return Err(ExpectedError::Settings(
                "a host name, labels and slots need a shared database: use --store URL, or `url` under \
                 [store] in plexus.toml, as well"
                    .to_owned(),
            ));
        };
        let address =
            PostgresAddress::parse(&url).map_err(|error| ExpectedError::Settings(error.to_string()))?;
        let password_file = args.store_password_file.or(self.password_file);
        if let Some(file) = password_file.as_ref().filter(|file| !file.is_absolute()) {
            return Err(ExpectedError::Settings(format!(
                "the password file of the store is relative ({}); use an absolute path",
                file.display()
            )));
        }
        let address = Box::new(address.with_password_file(password_file).with_pgpass(pgpass));
        let host = host.map(|host| {
            HostName::try_from(host.clone()).map_err(|why| {
                ExpectedError::Settings(format!("`{host}` cannot be the name of a host: {why}"))
            })
        });
        let host = host.transpose()?;
        Ok(StoreSetting::Postgres { address, host, capacity: Capacity { labels: parsed(labels)?, slots } })
    }
}

fn parsed(labels: Vec<String>) -> Result<BTreeSet<HostLabel>, ExpectedError> {
    let parse = |label: String| {
        HostLabel::try_from(label.clone())
            .map_err(|why| ExpectedError::Settings(format!("`{label}` cannot be a label: {why}")))
    };
    labels.into_iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(table: &str, url: Option<&str>, host: Option<&str>) -> Result<StoreSetting, String> {
        let table: StoreTable = toml::from_str(table).unwrap();
        let args = StoreArgs {
            store: url.map(|url| StoreUrl(url.to_owned())),
            store_password_file: None,
            host: host.map(str::to_owned),
            ..StoreArgs::default()
        };
        table.setting(args, Some(PathBuf::from("/home/me/.pgpass"))).map_err(|error| error.to_string())
    }

    #[test]
    fn the_state_is_in_a_file_unless_a_database_is_named() {
        assert!(matches!(setting("", None, None), Ok(StoreSetting::File)));
        let table =
            "url = \"postgres://plexus@db/plexus\"\nhost = \"one\"\npassword_file = \"/data/password\"";
        let Ok(StoreSetting::Postgres { address, host, .. }) = setting(table, None, Some("two")) else {
            panic!("a database")
        };
        assert_eq!(host.as_ref().map(HostName::as_str), Some("two"));
        let shown = format!("{address:?}");
        for part in ["\"plexus\"", "\"db\"", "/data/password", "/home/me/.pgpass"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }

    #[test]
    fn labels_and_slots_of_the_command_line_replace_those_of_the_file() {
        let file = "url = \"postgres://u@db/p\"\nlabels = [\"gpu\", \"team=a\"]\nslots = 2";
        let capacity = |labels: &[&str], slots| {
            let table: StoreTable = toml::from_str(file).unwrap();
            let labels = labels.iter().map(ToString::to_string).collect();
            match table.setting(StoreArgs { labels, slots, ..StoreArgs::default() }, None).unwrap() {
                StoreSetting::Postgres { capacity, .. } => (
                    capacity.labels.into_iter().map(String::from).collect::<Vec<_>>().join(" "),
                    capacity.slots,
                ),
                StoreSetting::File => panic!("a database"),
            }
        };
        assert_eq!(capacity(&[], None), ("gpu team=a".to_owned(), Some(2)));
        assert_eq!(capacity(&["cpu"], Some(0)), ("cpu".to_owned(), Some(0)));
        assert!(setting("slots = 1", None, None).unwrap_err().contains("--store"));
        let wrong = setting("labels = [\"a b\"]", Some("postgres://u@db/p"), None).unwrap_err();
        assert!(wrong.contains("`a b` cannot be a label"), "{wrong}");
    }

    #[test]
    fn a_wrong_setting_is_refused_without_showing_a_password() {
        let error = setting("", Some("mysql://u:A-SECRET@db/plexus"), None).unwrap_err();
        assert!(error.contains("PostgreSQL") && !error.contains("A-SECRET"), "{error}");
        let shown = format!("{:?}", setting("", Some("postgres://u:A-SECRET@db/p"), Some("a")).unwrap());
        assert!(!shown.contains("A-SECRET"), "{shown}");
        let table: StoreTable = toml::from_str("url = \"postgres://u:A-SECRET@db/p\"").unwrap();
        assert!(!format!("{table:?}").contains("A-SECRET"));
        assert!(setting("", None, Some("a")).unwrap_err().contains("--store"));
        assert!(setting("", Some("postgres://u@db/p"), Some("a b")).unwrap_err().contains("`a b`"));
        let relative = "url = \"postgres://u@db/p\"\npassword_file = \"password\"";
        assert!(setting(relative, None, None).unwrap_err().contains("absolute"));
        assert!(
            setting("", Some("postgres://u@db/p?sslmode=prefer"), None).unwrap_err().contains("verify-full")
        );
    }
}
