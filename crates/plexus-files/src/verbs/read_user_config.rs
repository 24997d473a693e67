//! Reads the files of the user's Claude Code configuration that can be imported: settings, MCP servers, agents and
//! skills. The hub interprets them. A file that cannot be read is reported in its place, so that it does not hide the
//! others. The body of the answer is the concatenated contents.

use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::read_file::{FileError, read};
use crate::request::{Input, Kind, Output, Request, Verb};

/// The user's settings, in the configuration directory.
pub const USER_SETTINGS: &str = "settings.json";
/// The name under which the file with the user's MCP servers is reported.
pub const USER_STATE: &str = ".claude.json";
/// The directory of the user's agents.
pub const USER_AGENTS: &str = "agents";
/// The directory of the user's skills.
pub const USER_SKILLS: &str = "skills";

/// The maximum number of files and directories below each of the two directories.
const MAX_ENTRIES: usize = 1000;
/// The maximum size of the settings, in bytes.
const MAX_SETTINGS_BYTES: u64 = 4 * 1024 * 1024;
/// The maximum size of the file with the MCP servers, in bytes. It also has the user's history.
const MAX_STATE_BYTES: u64 = 16 * 1024 * 1024;
/// The maximum size of each other file, in bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// The maximum size of all files together, in bytes.
const MAX_TOTAL_BYTES: u64 = 32 * 1024 * 1024;

/// Reads the configuration of the user.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReadUserConfig {
    /// The configuration directory.
    pub dir: PathBuf,
    /// The file with the MCP servers.
    pub state: Option<PathBuf>,
}

/// A file of the user's configuration.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserFile {
    /// Its path in the configuration directory, or [`USER_STATE`].
    pub path: String,
    /// Its size in the body of the answer, or why it cannot be read.
    pub size: Result<u64, String>,
}

impl From<ReadUserConfig> for Request {
    fn from(verb: ReadUserConfig) -> Self {
        Self::ReadUserConfig(verb)
    }
}

impl Verb for ReadUserConfig {
    type Answer = Vec<UserFile>;

    const KIND: Kind = Kind::Read;
    const MAX_BODY: u64 = MAX_TOTAL_BYTES;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        let mut found = Found::default();
        found.add(USER_SETTINGS, &self.dir.join(USER_SETTINGS), MAX_SETTINGS_BYTES);
        if let Some(state) = &self.state {
            found.add(USER_STATE, state, MAX_STATE_BYTES);
        }
        found.walk(&self.dir, USER_AGENTS, Links::Followed);
        found.walk(&self.dir, USER_SKILLS, Links::Reported);
        (found.files, found.contents.into())
    }
}

/// How symbolic links to files are treated. Links to directories are never followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    /// Read. An agent is one file, so its content is shown before it is imported.
    Followed,
    /// Reported as an error. A skill is copied with all its files, of which only the names are shown.
    Reported,
}

#[derive(Default)]
struct Found {
    files: Vec<UserFile>,
    contents: Vec<u8>,
}

impl Found {
    /// Adds a file. A missing file is not reported.
    fn add(&mut self, name: &str, path: &Path, limit: u64) {
        let size = match read(path, limit) {
            Err(FileError::NotFound) => return,
            Err(error) => Err(error.to_string()),
            Ok((_, size)) if size > limit => Err(format!("larger than {} KiB", limit / 1024)),
            Ok((content, _)) if (self.contents.len() + content.len()) as u64 > MAX_TOTAL_BYTES => {
                Err("the files of the configuration are too large in total".to_owned())
            }
            Ok((content, _)) => {
                self.contents.extend_from_slice(&content);
                Ok(content.len() as u64)
            }
        };
        self.files.push(UserFile { path: name.to_owned(), size });
    }

    fn fault(&mut self, path: &Path, why: impl std::fmt::Display) {
        self.files.push(UserFile { path: path.display().to_string(), size: Err(why.to_string()) });
    }

    /// Adds the files below a directory, in the order of their names.
    fn walk(&mut self, dir: &Path, top: &str, links: Links) {
        let mut folders = vec![PathBuf::from(top)];
        let mut entries_seen = 0;
        while let Some(folder) = folders.pop() {
            let entries = std::fs::read_dir(dir.join(&folder)).and_then(Iterator::collect);
            let mut entries: Vec<DirEntry> = match entries {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.fault(&folder, error);
                    continue;
                }
                Ok(entries) => entries,
            };
            entries.sort_by_key(DirEntry::file_name);
            entries_seen += entries.len();
            if entries_seen > MAX_ENTRIES {
                return self.fault(Path::new(top), format!("more than {MAX_ENTRIES} files and directories"));
            }
            for entry in entries {
                let path = folder.join(entry.file_name());
                let Some(name) = path.to_str().map(str::to_owned) else {
                    self.fault(&path, "the file name is not UTF-8");
                    continue;
                };
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    Ok(kind) if kind.is_symlink() && links == Links::Reported => {
                        self.fault(&path, "is a symbolic link");
                    }
                    _ if links == Links::Followed && !name.ends_with(".md") => {}
                    _ => self.add(&name, &dir.join(&path), MAX_FILE_BYTES),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(dir: &Path) -> (Vec<UserFile>, Vec<u8>) {
        let mut found = Found::default();
        found.add(USER_SETTINGS, &dir.join(USER_SETTINGS), MAX_SETTINGS_BYTES);
        found.walk(dir, USER_AGENTS, Links::Followed);
        found.walk(dir, USER_SKILLS, Links::Reported);
        (found.files, found.contents)
    }

    #[test]
    fn files_are_read_and_faults_hide_no_other_file() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        assert_eq!(read_all(dir), (Vec::new(), Vec::new()));
        for (path, text) in [
            ("agents/a.md", "A"),
            ("agents/note.txt", "ignored"),
            ("agents/in/b.md", "B"),
            ("skills/s/SKILL.md", "S"),
            ("skills/s/ref/x.py", "X"),
            ("secret", "SECRET"),
        ] {
            std::fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
            std::fs::write(dir.join(path), text).unwrap();
        }
        std::fs::create_dir(dir.join(USER_SETTINGS)).unwrap();
        std::os::unix::fs::symlink(dir.join("secret"), dir.join("skills/s/link.md")).unwrap();
        std::os::unix::fs::symlink(dir.join("skills/s"), dir.join("skills/t")).unwrap();
        std::fs::File::create(dir.join("agents/large.md")).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        let (files, contents) = read_all(dir);
        assert_eq!(contents, b"ABSX");
        let read: Vec<&str> =
            files.iter().filter(|file| file.size.is_ok()).map(|file| file.path.as_str()).collect();
        assert_eq!(read, ["agents/a.md", "agents/in/b.md", "skills/s/SKILL.md", "skills/s/ref/x.py"]);
        let mut faults: Vec<&str> =
            files.iter().filter(|file| file.size.is_err()).map(|file| file.path.as_str()).collect();
        faults.sort_unstable_by_key(|path| path.len());
        assert_eq!(faults, ["skills/t", USER_SETTINGS, "agents/large.md", "skills/s/link.md"]);
    }
}
