//! The wall around children, from the hub's side: what the settings ask for, whether this system grants it (tried once, at
//! the start), and what is said of it. How it is raised is `plexus-agent`'s, and whether it stands around a
//! run its keeper says.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plexus_agent::{
    Inode, Protection as Protected, RunDir, Tracing, Wall, WallNeed, Walled, read_wall, try_sandbox,
};
use plexus_protocol::claudecode::{Protection, SandboxView, SessionView, Wall as Shown};
use plexus_protocol::{Error, ErrorKind};
use plexus_store::RunKey;

use crate::{Hub, Settings};

/// Trying takes milliseconds on an idle machine; what takes longer than this counts as refused.
const TRY_WITHIN: Duration = Duration::from_secs(30);

/// The file in the data directory that says that this system has granted a sandbox before.
const GRANTED_BEFORE: &str = "sandboxed";

/// Whether children are kept from the hub's own files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WallSetting {
    /// Where the system grants it; elsewhere they are started without.
    #[default]
    Wanted,
    /// Else they are not started.
    Required,
    /// No.
    Off,
}

/// What the hub knows of walls before any child is started.
#[derive(Debug)]
pub(crate) struct Walls {
    data_dir: PathBuf,
    /// Which directory that is. It does not change while the hub runs, as its lock lies in it.
    inode: Option<Inode>,
    setting: WallSetting,
    /// What the system grants.
    granted: Walled,
    before: Before,
}

/// Whether an earlier hub on this data directory had a sandbox for its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Granted,
    Never,
}

impl Walls {
    /// Tries whether the system grants one, unless nobody wants it.
    pub(crate) async fn tried(settings: &Settings) -> Self {
        let data_dir = settings.data_dir.clone();
        let granted = match settings.wall {
            WallSetting::Off => Walled::None { reason: "`wall` in plexus.toml is \"off\"".to_owned() },
            WallSetting::Wanted | WallSetting::Required => granted(data_dir.clone(), settings.tracing).await,
        };
        let before = before(&data_dir, &granted);
        let inode = Inode::of(&data_dir).ok();
        Self { data_dir, inode, setting: settings.wall, granted, before }
    }

    /// Whether a child may be started without a sandbox. Once the system has granted one, none is: an agent could use up the
    /// namespaces that its user may have, so that the next agent, or the next hub's agents, would be started without.
    fn need(&self) -> Option<WallNeed> {
        match (self.setting, &self.granted, self.before) {
            (WallSetting::Off, ..) => None,
            (WallSetting::Required, ..)
            | (WallSetting::Wanted, Walled::Namespaces { .. }, _)
            | (WallSetting::Wanted, Walled::None { .. }, Before::Granted) => Some(WallNeed::Required),
            // What was refused once is not tried again for each child.
            (WallSetting::Wanted, Walled::None { .. }, Before::Never) => None,
        }
    }

    /// Why there are none.
    fn missing(&self) -> Option<&String> {
        match &self.granted {
            Walled::Namespaces { .. } => None,
            Walled::None { reason } => Some(reason),
        }
    }

    /// What a child is started behind, and the hub's own file helpers; it may be shown one file of the data directory.
    /// `None` where the system grants no sandbox and children are started without one.
    pub(crate) fn around(&self, show: Option<&Path>) -> Option<Wall> {
        let need = self.need()?;
        Some(Wall { hide: self.data_dir.clone(), show: show.map(Path::to_owned), need, inode: self.inode })
    }

    /// How to have agents started without a sandbox, where one is needed.
    fn remedy(&self) -> &'static str {
        match self.setting {
            WallSetting::Required => "set `wall = \"wanted\"` in plexus.toml",
            WallSetting::Wanted | WallSetting::Off => {
                "set `wall = \"off\"` in plexus.toml (this system has granted a sandbox before, so its absence may be the work of an agent)"
            }
        }
    }
}

/// Reads whether there was a sandbox before, and notes that there is one now.
fn before(data_dir: &Path, granted: &Walled) -> Before {
    let note = data_dir.join(GRANTED_BEFORE);
    if let Walled::Namespaces { .. } = granted
        && let Err(error) = std::fs::write(&note, "")
    {
        tracing::warn!("{} cannot be written: {error}", note.display());
    }
    if had_sandbox(data_dir) { Before::Granted } else { Before::Never }
}

/// Whether a hub on this data directory has had a sandbox for its agents. None is started without one from then on.
pub fn had_sandbox(data_dir: &Path) -> bool {
    data_dir.join(GRANTED_BEFORE).exists()
}

async fn granted(dir: PathBuf, tracing: Tracing) -> Walled {
    let tried = tokio::task::spawn_blocking(move || try_sandbox(&dir, tracing));
    match tokio::time::timeout(TRY_WITHIN, tried).await {
        Ok(Ok(granted)) => granted,
        Ok(Err(error)) => Walled::None { reason: format!("it could not be tried: {error}") },
        Err(_) => Walled::None { reason: format!("it could not be tried within {} s", TRY_WITHIN.as_secs()) },
    }
}

fn shown(protected: Protected) -> Protection {
    match protected {
        Protected::Held(by) => Protection::Held { by },
        Protected::Open(why) => Protection::Open { why },
    }
}

impl Hub {
    /// What a person should know who has asked for walls and cannot have them.
    pub fn wall_warning(&self) -> Option<String> {
        let walls = self.walls();
        let reason = walls.missing().filter(|_| walls.setting != WallSetting::Off)?;
        let so = match walls.need() {
            Some(_) => format!("so no agent is started; allow user namespaces here, or {}", walls.remedy()),
            None => "so agents can read the data directory, the operator's token in it included".to_owned(),
        };
        Some(format!("this system grants no wall around agents, {so} ({reason}); see docs/configuration.md"))
    }

    /// Refuses to begin what would need a child that may not be started.
    pub(crate) fn check_wall(&self) -> Result<(), Error> {
        let walls = self.walls();
        match walls.missing() {
            Some(reason) if walls.need().is_some() => {
                let message = format!(
                    "no agent is started without a wall between it and the hub's data, and this system grants none \
                     ({reason}): allow user namespaces here, or {}",
                    walls.remedy()
                );
                Err(Error::new(ErrorKind::NoWall, message))
            }
            _ => Ok(()),
        }
    }

    /// Adds to a view what stands around the session's process, or will stand around its next one.
    pub(crate) fn show_wall(&self, view: &mut SessionView, latest: RunKey) {
        let granted = &self.walls().granted;
        let walled = match self.keeper_of(latest.session) {
            None => granted.clone(),
            Some(_) => match (read_wall(&RunDir::new(self.settings().run_dir(latest))), granted) {
                (Some(walled), _) => walled,
                (None, Walled::None { .. }) => granted.clone(),
                (None, Walled::Namespaces { .. }) => {
                    Walled::None { reason: "its process has said nothing of one".to_owned() }
                }
            },
        };
        match walled {
            Walled::Namespaces { signals, descriptors, memory } => {
                view.wall = Some(Shown::Namespaces);
                view.sandbox = Some(SandboxView {
                    signals: shown(signals),
                    descriptors: shown(descriptors),
                    memory: shown(memory),
                });
            }
            Walled::None { reason } => {
                view.wall = Some(Shown::None);
                view.wall_missing = Some(reason);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walls(setting: WallSetting, granted: Walled, dir: &Path) -> Walls {
        let before = before(dir, &granted);
        Walls { data_dir: dir.to_owned(), inode: Inode::of(dir).ok(), setting, granted, before }
    }

    fn refused() -> Walled {
        Walled::None { reason: "no namespaces are left".to_owned() }
    }

    fn granted() -> Walled {
        let held = || Protected::Held("a test".to_owned());
        Walled::Namespaces { signals: held(), descriptors: held(), memory: held() }
    }

    #[test]
    fn a_sandbox_that_was_granted_once_is_needed_from_then_on() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = |granted| walls(WallSetting::Wanted, granted, dir.path());
        assert_eq!(wanted(refused()).need(), None, "it never was");
        assert_eq!(wanted(granted()).need(), Some(WallNeed::Required));
        let lost = wanted(refused());
        assert_eq!(lost.need(), Some(WallNeed::Required), "an agent may have used up the namespaces");
        assert!(lost.remedy().contains("\"off\""));
        let around = lost.around(None).expect("the hub's helpers do not go without either");
        assert_eq!((around.hide.as_path(), around.inode), (dir.path(), Inode::of(dir.path()).ok()));
        assert_eq!(walls(WallSetting::Off, refused(), dir.path()).need(), None);
    }
}
