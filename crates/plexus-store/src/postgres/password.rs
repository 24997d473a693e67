//! The password of a PostgreSQL database: from the address, else from its file, else from the password file of libpq (`~/.pgpass`), whose format
//! this module parses.

use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::address::{PostgresAddress, port_of_host};
use super::secret_file::{self, SecretFileError};

/// The directories of sockets for which libpq looks up the password of `localhost`.
const SOCKET_DIRS: [&str; 3] = ["/run/postgresql", "/var/run/postgresql", "/tmp"];

/// A password. Its debug output does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Password(Vec<u8>);

impl Password {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Password(_)")
    }
}

/// Why no password can be chosen.
#[derive(Debug, Error)]
pub(super) enum PasswordError {
    /// The file cannot be used.
    #[error("the password of the database: {0}")]
    File(#[from] SecretFileError),
    /// The file does not contain one password.
    #[error("the password of the database: {0} must contain one line, the password")]
    NotOneLine(PathBuf),
    /// The driver uses one password for all hosts.
    #[error(
        "{0} contains different passwords for the hosts in the address of the database: use the same for all"
    )]
    Different(PathBuf),
}

/// The password for this address; `None` if it is in the address, or nowhere.
pub(super) fn find(address: &PostgresAddress) -> Result<Option<Password>, PasswordError> {
    if address.config.get_password().is_some_and(|password| !password.is_empty()) {
        return Ok(None);
    }
    if let Some(file) = &address.password_file {
        let content = secret_file::read(file)?;
        let password = only_line(&content).ok_or_else(|| PasswordError::NotOneLine(file.clone()))?;
        return Ok(Some(password));
    }
    match &address.pgpass {
        Some(file) => in_pgpass(file, &address.config),
        None => Ok(None),
    }
}

/// The only line of a file, without its end.
fn only_line(content: &[u8]) -> Option<Password> {
    let line = content.strip_suffix(b"\n").unwrap_or(content);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let is_one_line = !line.is_empty() && !line.contains(&b'\n');
    is_one_line.then(|| Password(line.to_vec()))
}

/// As in libpq, a file that cannot be used is ignored.
fn in_pgpass(file: &Path, config: &Config) -> Result<Option<Password>, PasswordError> {
    let content = match secret_file::read(file) {
        Ok(content) => content,
        Err(error) => {
            if !error.is_missing() {
                tracing::warn!(%error, "the password file is ignored");
            }
            return Ok(None);
        }
    };
    let mut found = Login::all(config).into_iter().map(|login| login.password(&content));
    let first = found.next().flatten();
    if found.any(|other| other != first) {
        return Err(PasswordError::Different(file.to_owned()));
    }
    Ok(first)
}

/// What a line of a password file must match.
struct Login<'a> {
    /// Several texts can name the host.
    hosts: Vec<&'a [u8]>,
    port: String,
    database: &'a [u8],
    user: &'a [u8],
}

impl<'a> Login<'a> {
    /// One for each host of the address.
    fn all(config: &'a Config) -> Vec<Self> {
        let login = |(i, host): (usize, &'a Host)| Self {
            hosts: names(host),
            port: port_of_host(config, i).to_string(),
            database: config.get_dbname().unwrap_or_default().as_bytes(),
            user: config.get_user().unwrap_or_default().as_bytes(),
        };
        config.get_hosts().iter().enumerate().map(login).collect()
    }

    /// The password in the first line that matches. An empty one is none.
    fn password(&self, content: &[u8]) -> Option<Password> {
        let lines = content.split(|byte| *byte == b'\n');
        let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let mut lines = lines.filter(|line| !line.starts_with(b"#"));
        lines.find_map(|line| self.password_in(line)).filter(|password| !password.0.is_empty())
    }

    fn password_in(&self, line: &[u8]) -> Option<Password> {
        let (host, rest) = field(line)?;
        let (port, rest) = field(rest)?;
        let (database, rest) = field(rest)?;
        let (user, password) = field(rest)?;
        let is_match = self.hosts.iter().any(|name| host.matches(name))
            && port.matches(self.port.as_bytes())
            && database.matches(self.database)
            && user.matches(self.user);
        is_match.then(|| Password(unescaped(password)))
    }
}

/// The names of a host in a password file.
fn names(host: &Host) -> Vec<&[u8]> {
    match host {
        Host::Tcp(name) => vec![name.as_bytes()],
        Host::Unix(dir) => {
            let mut names = vec![dir.as_os_str().as_bytes()];
            if SOCKET_DIRS.iter().any(|default| dir == Path::new(default)) {
                names.push(b"localhost");
            }
            names
        }
    }
}

/// A field of a line.
#[derive(Debug, PartialEq)]
enum Field {
    Any,
    Exactly(Vec<u8>),
}

impl Field {
    fn matches(&self, value: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(expected) => expected == value,
        }
    }
}

/// Splits the first field off: up to the first `:` that is not escaped.
fn field(line: &[u8]) -> Option<(Field, &[u8])> {
    let mut end = 0;
    loop {
        match line.get(end)? {
            b':' => break,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    let (raw, rest) = (line.get(..end)?, line.get(end + 1..)?);
    let field = if raw == b"*" { Field::Any } else { Field::Exactly(unescaped(raw)) };
    Some((field, rest))
}

/// Removes the backslash before each escaped byte. A backslash at the end stands for itself.
fn unescaped(raw: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter();
    while let Some(byte) = bytes.next() {
        let escaped = if *byte == b'\\' { bytes.next() } else { None };
        text.push(*escaped.unwrap_or(byte));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use proptest::prelude::*;

    use super::*;

    fn config(url: &str) -> Config {
        PostgresAddress::parse(url).unwrap().config
    }

    fn lookup(url: &str, content: &[u8]) -> Option<String> {
        let config = config(url);
        let password = Login::all(&config).remove(0).password(content)?;
        Some(String::from_utf8(password.0).unwrap())
    }

    #[test]
    fn the_first_line_that_matches_has_the_password() {
        let content = b"# db.example:5432:p:u:comment\n\
            db.example:5433:p:u:other port\n\
            db.example:5432:q:u:other database\n\
            db.example:5432:p:v:other user\r\n\
            other.example:*:*:*:other host\n\
            db.example:5432:p:u:first\r\n\
            *:*:*:*:any\n";
        let found = |url| lookup(url, content);
        assert_eq!(found("postgres://u@db.example/p").as_deref(), Some("first"));
        assert_eq!(found("postgres://u@db.example:5433/p").as_deref(), Some("other port"));
        assert_eq!(found("postgres://v@db.example/p").as_deref(), Some("other user"));
        assert_eq!(found("postgres://v@other.example/x").as_deref(), Some("other host"));
        assert_eq!(found("postgres://v@third.example/x").as_deref(), Some("any"));
        assert_eq!(lookup("postgres://u@db.example/p", b""), None);
    }

    #[test]
    fn backslashes_escape_colons_and_stars() {
        let found = |url: &str, line: &str| lookup(url, line.as_bytes());
        assert_eq!(found("postgres://u@[::1]/p", r"\:\:1:5432:p:u:x").as_deref(), Some("x"));
        assert_eq!(found("postgres://a%3Ab@h/p", r"h:*:p:a\:b:x").as_deref(), Some("x"));
        assert_eq!(found("postgres://u@h/p", r"h:*:p:u:a:b\:c\\d\e").as_deref(), Some(r"a:b:c\de"));
        assert_eq!(found("postgres://u@h/p", r"h:*:p:u:end\").as_deref(), Some(r"end\"));
        // An escaped star is not a wildcard.
        assert_eq!(found("postgres://u@h/p", r"\*:*:*:*:x"), None);
        assert_eq!(found("postgres://%2A@h/p", r"h:*:p:\*:x").as_deref(), Some("x"));
        assert_eq!(found("postgres://u@h/p", "h*:*:*:*:x"), None);
    }

    #[test]
    fn a_line_without_all_fields_is_skipped() {
        for line in
            ["", ":", "h", "h:5432:p:u", "h:5432:p", r"h:5432:p:u\:x", r"\", "*:*:*:*", " h:5432:p:u:x"]
        {
            assert_eq!(lookup("postgres://u@h/p", line.as_bytes()), None, "{line}");
        }
        assert_eq!(lookup("postgres://u@h/p", b"h:5432:p:u:\n*:*:*:*:later"), None, "the first match counts");
    }

    #[test]
    fn a_socket_has_the_name_of_its_directory() {
        let found =
            |dir: &str, line: &str| lookup(&format!("postgres://u@/p?host={dir}"), line.as_bytes()).is_some();
        assert!(found("/srv/pg", "/srv/pg:5432:p:u:x"));
        assert!(!found("/srv/pg", "localhost:5432:p:u:x"));
        assert!(found("/var/run/postgresql", "localhost:5432:p:u:x"));
    }

    #[test]
    fn a_password_file_contains_one_line() {
        let line = |content: &[u8]| only_line(content).map(|password| password.0);
        assert_eq!(line(b"a b"), Some(b"a b".to_vec()));
        assert_eq!(line(b" a \n"), Some(b" a ".to_vec()));
        assert_eq!(line(b"a\r\n"), Some(b"a".to_vec()));
        assert_eq!(line(b"\xff\n"), Some(b"\xff".to_vec()));
        for wrong in [&b""[..], b"\n", b"\r\n", b"a\nb", b"a\n\n"] {
            assert_eq!(line(wrong), None, "{wrong:?}");
        }
    }

    /// A private file.
    fn file(dir: &Path, name: &str, content: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path
    }

    #[test]
    fn the_address_is_used_before_the_file_and_the_file_before_pgpass() {
        let dir = tempfile::tempdir().unwrap();
        let own = file(dir.path(), "own", "from the file\n");
        let pgpass = file(dir.path(), "pgpass", "*:*:*:*:from pgpass\n");
        let found = |url: &str, own: Option<&PathBuf>, pgpass: &Path| {
            let address = PostgresAddress::parse(url).unwrap();
            find(&address.with_password_file(own.cloned()).with_pgpass(Some(pgpass.to_owned())))
        };
        let text = |found: Result<Option<Password>, PasswordError>| {
            found.unwrap().map(|password| String::from_utf8(password.0).unwrap())
        };
        assert_eq!(text(found("postgres://u:here@h/p", Some(&own), &pgpass)), None);
        assert_eq!(text(found("postgres://u:@h/p", Some(&own), &pgpass)).as_deref(), Some("from the file"));
        assert_eq!(text(found("postgres://u@h/p", None, &pgpass)).as_deref(), Some("from pgpass"));
        assert_eq!(text(found("postgres://u@h/p", None, &dir.path().join("missing"))), None);
        // A file that the user has named must be usable.
        assert!(found("postgres://u@h/p", Some(&dir.path().join("missing")), &pgpass).is_err());
        std::fs::set_permissions(&own, Permissions::from_mode(0o644)).unwrap();
        let exposed = found("postgres://u@h/p", Some(&own), &pgpass).unwrap_err().to_string();
        assert!(exposed.contains("chmod 600") && !exposed.contains("from the file"), "{exposed}");
        std::fs::set_permissions(&pgpass, Permissions::from_mode(0o640)).unwrap();
        assert_eq!(text(found("postgres://u@h/p", None, &pgpass)), None);
    }

    #[test]
    fn hosts_with_different_passwords_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let different = file(dir.path(), "different", "a:*:*:*:one\nb:*:*:*:two\n");
        let same = file(dir.path(), "same", "a:*:*:*:one\nb:*:*:*:one\n");
        let config = config("postgres://u@a,b/p");
        assert!(matches!(in_pgpass(&different, &config), Err(PasswordError::Different(_))));
        assert_eq!(in_pgpass(&same, &config).unwrap().unwrap().0, b"one");
    }

    #[test]
    fn a_password_is_not_shown() {
        assert!(!format!("{:?}", Password(b"SECRET".to_vec())).contains("SECRET"));
    }

    proptest! {
        #[test]
        fn an_escaped_line_is_read_as_it_was_written(texts in proptest::array::uniform5("[a:*\\\\#]{1,5}")) {
            let escaped = texts.clone().map(|text| text.replace('\\', r"\\").replace(':', r"\:").replace('*', r"\*"));
            let line = format!("{}\n", escaped.join(":"));
            let [host, port, database, user, password] = &texts;
            let login = Login {
                hosts: vec![host.as_bytes()],
                port: port.clone(),
                database: database.as_bytes(),
                user: user.as_bytes(),
            };
            let expected = (!line.starts_with('#')).then(|| Password(password.as_bytes().to_vec()));
            prop_assert_eq!(login.password(line.as_bytes()), expected);
        }

        #[test]
        fn no_content_panics(content in proptest::collection::vec(any::<u8>(), 0..80)) {
            let config = config("postgres://u@h/p");
            let _ = Login::all(&config).remove(0).password(&content);
        }
    }
}
