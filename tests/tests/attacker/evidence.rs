//! Evidence of a successful attack: bytes of the data directory in another place, or a changed file in the data directory.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use plexus_e2e::World;

/// A text that is only in files of the data directory.
const MARKER: &str = "MARKER-OF-THE-DATA-DIRECTORY";
/// The prefix of the names of an attacker's files.
pub const EVIL: &str = "evil-";

/// The names of the files in the directory `marked` of the data directory.
pub fn many() -> impl Iterator<Item = String> {
    (0..200).map(|i| format!("m-{i}"))
}

/// The data directory as it was before an attack.
pub struct Evidence {
    data: PathBuf,
    token: String,
    before: BTreeMap<PathBuf, State>,
}

/// Content, mode, and which file it is.
#[derive(Debug, PartialEq, Eq)]
struct State(Vec<u8>, u32, u64);

impl Evidence {
    /// Fills the data directory of a hub with markers.
    pub fn of(world: &World) -> anyhow::Result<Self> {
        let data = world.hub.data_dir().to_owned();
        let some = ["marker.txt", "marked/marker.txt", "marked/deep/marker.txt"].map(str::to_owned);
        for file in some.into_iter().chain(many().map(|name| format!("marked/{name}"))) {
            let path = data.join(file);
            std::fs::create_dir_all(path.parent().unwrap_or(&data))?;
            std::fs::write(path, MARKER)?;
        }
        let token = world.hub.token()?;
        let mut evidence = Self { data, token, before: BTreeMap::new() };
        evidence.before = evidence.now()?;
        Ok(evidence)
    }

    /// The files that the hub itself never changes while it runs.
    fn now(&self) -> anyhow::Result<BTreeMap<PathBuf, State>> {
        let mut found = BTreeMap::new();
        for file in
            ["operator.token", "plexus.toml", "marker.txt", "marked/marker.txt", "marked/deep/marker.txt"]
        {
            let path = self.data.join(file);
            let Ok(metadata) = path.symlink_metadata() else { continue };
            found.insert(path.clone(), State(std::fs::read(&path)?, metadata.mode(), metadata.ino()));
        }
        Ok(found)
    }

    /// Whether these bytes contain any content of the data directory.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        text.contains(MARKER) || text.contains(&self.token)
    }

    /// The regular files in `dir` that contain any content of the data directory. It does not follow links.
    pub fn leaked_to(&self, dir: &Path) -> Vec<PathBuf> {
        let holds = |path: &PathBuf| std::fs::read(path).is_ok_and(|content| self.is_in(&content));
        files_below(dir).into_iter().filter(holds).collect()
    }

    /// The changes: changed files of the hub, and new files of an attacker.
    pub fn changed(&self) -> anyhow::Result<Vec<String>> {
        let now = self.now()?;
        let differs = |path: &&PathBuf| now.get(*path) != self.before.get(*path);
        let mut changed: Vec<String> =
            self.before.keys().filter(differs).map(|path| path.display().to_string()).collect();
        let evil =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(EVIL));
        changed
            .extend(files_below(&self.data).into_iter().filter(evil).map(|path| path.display().to_string()));
        Ok(changed)
    }
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in dir.read_dir().into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files
}
