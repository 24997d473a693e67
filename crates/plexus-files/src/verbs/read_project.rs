//! Reads the files of a project that the operator can trust: its settings, its MCP servers and its agents. The hub
//! interprets them. The body of the answer is the concatenated contents.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::read_file::{FileError, read};
use crate::request::{Input, Kind, Output, Request, Verb};

/// The project's settings.
pub const SETTINGS: &str = ".claude/settings.json";
/// The project's MCP servers.
pub const SERVERS: &str = ".mcp.json";
const AGENTS: &str = ".claude/agents";
/// Directories that are never loaded, but are reported if they exist.
const LEFT_OUT: [&str; 2] = [".claude/skills", ".claude/commands"];

const MAX_AGENTS: usize = 100;
/// The maximum size of one file, and of all files together, in bytes.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
const MAX_TOTAL_BYTES: u64 = 16 * 1024 * 1024;

/// Reads the configuration files of a project.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReadProject {
    /// The working directory of a session.
    pub dir: PathBuf,
}

/// The configuration files of a project. The body of the answer contains their contents in this order.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProjectFiles {
    /// The files by their path in the project, with their sizes.
    pub files: Vec<(String, u64)>,
    /// Directories that are not loaded.
    pub left_out: Vec<String>,
}

/// A project file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFault {
    /// Its path in the project.
    pub file: String,
    /// The reason.
    pub why: String,
}

impl From<ReadProject> for Request {
    fn from(verb: ReadProject) -> Self {
        Self::ReadProject(verb)
    }
}

impl Verb for ReadProject {
    type Answer = Result<ProjectFiles, ProjectFault>;

    const KIND: Kind = Kind::Read;
    const MAX_BODY: u64 = MAX_TOTAL_BYTES;

    fn perform(self, _input: Input) -> (Self::Answer, Output) {
        let files = match project_files(&self.dir) {
            Ok(files) => files,
            Err(fault) => return (Err(fault), Output::default()),
        };
        let left_out = LEFT_OUT.iter().filter(|folder| self.dir.join(folder).exists());
        let answer = ProjectFiles {
            files: files.iter().map(|(path, content)| (path.clone(), content.len() as u64)).collect(),
            left_out: left_out.map(|folder| (*folder).to_owned()).collect(),
        };
        let contents: Vec<u8> = files.into_values().flatten().collect();
        (Ok(answer), contents.into())
    }
}

/// The configuration files that exist.
fn project_files(dir: &Path) -> Result<BTreeMap<String, Vec<u8>>, ProjectFault> {
    let mut found = Found { dir, files: BTreeMap::new(), bytes: 0 };
    for path in [SETTINGS, SERVERS] {
        match found.add(path.to_owned()) {
            Err(FileError::NotFound) => {}
            added => added.map_err(|why| fault(path, why))?,
        }
    }
    let mut folders = vec![PathBuf::from(AGENTS)];
    let mut folders_seen = 1;
    while let Some(folder) = folders.pop() {
        let shown = folder.display().to_string();
        let entries = match std::fs::read_dir(dir.join(&folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder == Path::new(AGENTS) => continue,
            entries => entries.map_err(|why| fault(&shown, why))?,
        };
        for entry in entries {
            let entry = entry.map_err(|why| fault(&shown, why))?;
            let path = folder.join(entry.file_name());
            let name = path.to_str().ok_or_else(|| fault(AGENTS, "a file name is not UTF-8"))?.to_owned();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
                folders_seen += 1;
            } else if name.ends_with(".md") {
                found.add(name.clone()).map_err(|why| fault(&name, why))?;
            }
            if found.files.len() + folders_seen > MAX_AGENTS {
                return Err(fault(AGENTS, format!("more than {MAX_AGENTS} files and directories")));
            }
        }
    }
    Ok(found.files)
}

struct Found<'a> {
    dir: &'a Path,
    files: BTreeMap<String, Vec<u8>>,
    bytes: u64,
}

impl Found<'_> {
    fn add(&mut self, path: String) -> Result<(), FileError> {
        let (content, size) = read(&self.dir.join(&path), MAX_FILE_BYTES)?;
        self.bytes += size;
        if size > MAX_FILE_BYTES || self.bytes > MAX_TOTAL_BYTES {
            return Err(FileError::Io("the file, or all files together, are too large".to_owned()));
        }
        self.files.insert(path, content);
        Ok(())
    }
}

fn fault(file: &str, why: impl std::fmt::Display) -> ProjectFault {
    ProjectFault { file: file.to_owned(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_configuration_of_a_project_is_read() {
        let dir = tempfile::tempdir().unwrap();
        assert!(project_files(dir.path()).unwrap().is_empty());
        let write = |path: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "x").unwrap();
        };
        let wanted = [SETTINGS, ".claude/agents/a.md", ".claude/agents/in/b.md", SERVERS];
        wanted.iter().for_each(|path| write(path));
        [".claude/agents/c.txt", ".claude/skills/d.md", "CLAUDE.md"].iter().for_each(|path| write(path));
        let files = project_files(dir.path()).unwrap();
        assert_eq!(
            files.keys().map(String::as_str).collect::<std::collections::BTreeSet<_>>(),
            wanted.into()
        );
        std::fs::remove_file(dir.path().join(SERVERS)).unwrap();
        std::fs::create_dir(dir.path().join(SERVERS)).unwrap();
        assert_eq!(project_files(dir.path()).unwrap_err().file, SERVERS);
    }

    #[test]
    fn too_many_or_too_large_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let agents = dir.path().join(AGENTS);
        std::fs::create_dir_all(&agents).unwrap();
        std::fs::File::create(agents.join("large.md")).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        assert_eq!(project_files(dir.path()).unwrap_err().file, ".claude/agents/large.md");
        std::fs::remove_file(agents.join("large.md")).unwrap();
        let mut deep = agents.clone();
        for _ in 0..=MAX_AGENTS {
            deep.push("d");
        }
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(project_files(dir.path()).unwrap_err().file, AGENTS);
    }
}
