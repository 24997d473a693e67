//! The wall around children, from the hub's side: what the settings ask for, whether this system grants it (tried once, at
//! the start), and what is said of it. How it is raised is `plexus-agent`'s, and whether it stands around a
//! run its keeper says.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plexus_agent::{RunDir, Wall, WallNeed, Walled, read_wall, try_wall};
use plexus_protocol::claudecode::{SessionView, Wall as Shown};
use plexus_protocol::{Error, ErrorKind};
use plexus_store::RunKey;

use crate::{Hub, Settings};

/// Trying takes milliseconds; what takes longer is as good as refused.
const TRY_WITHIN: Duration = Duration::from_secs(5);

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
    setting: WallSetting,
    /// Why there are none.
    missing: Option<String>,
}

impl Walls {
    /// Tries whether the system grants one, unless nobody wants it.
    pub(crate) async fn tried(settings: &Settings) -> Self {
        let data_dir = settings.data_dir.clone();
        let missing = match settings.wall {
            WallSetting::Off => Some("`wall` in plexus.toml is \"off\"".to_owned()),
            WallSetting::Wanted | WallSetting::Required => refusal(data_dir.clone()).await,
        };
        Self { data_dir, setting: settings.wall, missing }
    }

    /// The directory that children, and the hub's own file helpers, do not see; `None` where the system grants no
    /// sandbox and children are started without one.
    pub(crate) fn hidden(&self) -> Option<PathBuf> {
        // Once granted, it is never done without: a child could use up the namespaces that a user may have.
        (self.setting == WallSetting::Required || self.missing.is_none()).then(|| self.data_dir.clone())
    }

    /// What a child is started behind; it may be shown one file of the data directory.
    pub(crate) fn around(&self, show: Option<&Path>) -> Option<Wall> {
        let need = match self.setting {
            WallSetting::Off => return None,
            // What was refused once is not tried again for each child.
            WallSetting::Wanted if self.missing.is_some() => return None,
            WallSetting::Wanted => WallNeed::Wanted,
            WallSetting::Required => WallNeed::Required,
        };
        Some(Wall { hide: self.data_dir.clone(), show: show.map(Path::to_owned), need })
    }
}

async fn refusal(dir: PathBuf) -> Option<String> {
    let tried = tokio::task::spawn_blocking(move || try_wall(&dir));
    match tokio::time::timeout(TRY_WITHIN, tried).await {
        Ok(Ok(tried)) => tried.err(),
        Ok(Err(error)) => Some(format!("it could not be tried: {error}")),
        Err(_) => Some(format!("it could not be tried within {} s", TRY_WITHIN.as_secs())),
    }
}

impl Hub {
    /// What a person should know who has asked for walls and cannot have them.
    pub fn wall_warning(&self) -> Option<String> {
        let walls = self.walls();
        let reason = walls.missing.as_ref().filter(|_| walls.setting != WallSetting::Off)?;
        let so = match walls.setting {
            WallSetting::Required => "so no agent is started, as `wall` in plexus.toml is \"required\"",
            WallSetting::Wanted | WallSetting::Off => {
                "so agents can read the data directory, the operator's token in it included"
            }
        };
        Some(format!("this system grants no wall around agents, {so} ({reason}); see docs/configuration.md"))
    }

    /// Refuses to begin what would need a child that may not be started.
    pub(crate) fn check_wall(&self) -> Result<(), Error> {
        let walls = self.walls();
        match &walls.missing {
            Some(reason) if walls.setting == WallSetting::Required => {
                let message = format!(
                    "no agent is started without a wall between it and the hub's data, and this system grants none \
                     ({reason}): allow user namespaces here, or set `wall = \"wanted\"` in plexus.toml"
                );
                Err(Error::new(ErrorKind::NoWall, message))
            }
            _ => Ok(()),
        }
    }

    /// Adds to a view what stands around the session's process, or will stand around its next one.
    pub(crate) fn show_wall(&self, view: &mut SessionView, latest: RunKey) {
        let missing = match self.keeper_of(latest.session) {
            None => self.walls().missing.clone(),
            Some(_) => match read_wall(&RunDir::new(self.settings().run_dir(latest))) {
                Some(Walled::Namespaces) => None,
                Some(Walled::None { reason }) => Some(reason),
                None => Some(
                    self.walls()
                        .missing
                        .clone()
                        .unwrap_or_else(|| "its process has said nothing of one".to_owned()),
                ),
            },
        };
        view.wall = Some(if missing.is_none() { Shown::Namespaces } else { Shown::None });
        view.wall_missing = missing;
    }
}
