//! The sandbox of children, as the hub configures it: what the settings require, whether this system grants it (tried
//! once, at the start), and what callers see of it. `plexus-agent` builds the sandbox, and the keeper of a run reports
//! whether it is in place.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plexus_agent::{
    Inode, Protection as Protected, RunDir, Sandbox, SandboxPart, SandboxState, Tracing, list_data_dir,
    read_sandbox, try_sandbox,
};
use plexus_protocol::claudecode::{Protection, SandboxKind, SandboxView, SessionView};
use plexus_protocol::{Error, ErrorKind};

use crate::{SandboxSetting, Settings};

/// The try takes milliseconds on an idle machine; a longer one counts as refused.
const TRY_WITHIN: Duration = Duration::from_secs(30);

/// The file in the data directory that lists, as JSON, the sandbox parts that this system has granted before.
const GRANTED_BEFORE: &str = "sandboxed";

/// The sandbox configuration of a hub, known before any child is started.
#[derive(Debug)]
pub(crate) struct SandboxSetup {
    data_dir: PathBuf,
    /// The inode of the data directory. It does not change while the hub runs, because the hub's lock lies in it.
    inode: Option<Inode>,
    /// The file that lists the data directories of all hubs.
    hubs: Option<PathBuf>,
    setting: SandboxSetting,
    /// The sandbox that the system grants; none if it refuses a part that it granted before.
    granted: SandboxState,
    /// The parts that the system has granted to this hub or an earlier one on the same data directory.
    before: BTreeSet<SandboxPart>,
}

impl SandboxSetup {
    /// Tests whether the system grants a sandbox, unless the settings disable it.
    pub(crate) async fn tried(settings: &Settings) -> Self {
        let data_dir = settings.data_dir.clone();
        let before = granted_before(&data_dir);
        let granted = match settings.sandbox {
            SandboxSetting::Off => {
                SandboxState::None { reason: "`wall` in plexus.toml is \"off\"".to_owned() }
            }
            SandboxSetting::Wanted | SandboxSetting::Required => {
                granted(data_dir.clone(), settings.tracing, before.clone()).await
            }
        };
        if let Some(hubs) = &settings.hubs_list
            && let Err(error) = list_data_dir(hubs, &data_dir)
        {
            let hubs = hubs.display();
            tracing::warn!(
                "cannot write {hubs}, so the agents of other hubs can read this data directory: {error}"
            );
        }
        let hubs = settings.hubs_list.clone();
        Self { hubs, ..Self::new(data_dir, settings.sandbox, granted, before) }
    }

    /// Stores which parts the system grants, for later hubs.
    fn new(
        data_dir: PathBuf,
        setting: SandboxSetting,
        granted: SandboxState,
        mut before: BTreeSet<SandboxPart>,
    ) -> Self {
        if let SandboxState::Namespaces { parts, .. } = &granted
            && !parts.is_subset(&before)
        {
            before.extend(parts);
            if let Err(error) = note_granted(&data_dir, &before) {
                tracing::warn!("cannot write {}: {error}", data_dir.join(GRANTED_BEFORE).display());
            }
        }
        let inode = Inode::of(&data_dir).ok();
        Self { data_dir, inode, hubs: None, setting, granted, before }
    }

    /// The sandbox parts that every child requires; `None` if children are started without a sandbox. A part that was
    /// granted once is required from then on: otherwise an agent could use up its user's namespaces, so that the next
    /// agent, or the agents of the next hub, would start without that part.
    fn required(&self) -> Option<BTreeSet<SandboxPart>> {
        let mut required = self.before.clone();
        match self.setting {
            SandboxSetting::Off => return None,
            SandboxSetting::Required => _ = required.insert(SandboxPart::Files),
            SandboxSetting::Wanted => {}
        }
        // A sandbox that was refused is not tried again for each child.
        (!required.is_empty()).then_some(required)
    }

    /// Why the system grants no sandbox; `None` if it does.
    fn missing(&self) -> Option<&String> {
        match &self.granted {
            SandboxState::Namespaces { .. } => None,
            SandboxState::None { reason } => Some(reason),
        }
    }

    /// The sandbox for a child or for the hub's own file helpers, with one visible file of the data directory if `show`
    /// is given. `None` if children are started without a sandbox.
    pub(crate) fn around(&self, show: Option<&Path>) -> Option<Sandbox> {
        let required = self.required()?;
        let (show, hubs) = (show.map(Path::to_owned), self.hubs.clone());
        Some(Sandbox { hide: self.data_dir.clone(), show, required, inode: self.inode, hubs })
    }

    /// Whether the data directory is hidden from every child.
    pub(crate) fn hides_data_dir(&self) -> bool {
        self.missing().is_none() && self.required().is_some_and(|parts| parts.contains(&SandboxPart::Files))
    }

    /// Advice for an operator whose system refuses a required part of the sandbox.
    fn remedy(&self) -> String {
        if self.before.is_empty() {
            return "allow user namespaces on this system, or set `wall = \"wanted\"` in plexus.toml"
                .to_owned();
        }
        regain_sandbox(&self.data_dir)
    }
}

/// Advice for an operator whose system refuses a part of the sandbox that it granted before.
pub fn regain_sandbox(data_dir: &Path) -> String {
    format!(
        "the system supported it before, so an agent may have used up the namespaces of this user: stop all \
         agents (`plexus down`) and start the hub again, or raise the limits (`sysctl user`). If you changed \
         the system on purpose, delete {} and restart the hub: agents then start with the sandbox that the \
         system supports",
        data_dir.join(GRANTED_BEFORE).display()
    )
}

/// The sandbox parts that a hub on this data directory has been granted before. From then on no agent starts without
/// them.
pub fn granted_before(data_dir: &Path) -> BTreeSet<SandboxPart> {
    match std::fs::read(data_dir.join(GRANTED_BEFORE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeSet::new(),
        // An older version stored an empty file for the sandbox as a whole.
        Ok(note) if note.is_empty() => BTreeSet::from([SandboxPart::Files]),
        // An unreadable file may list any part, so all are required.
        Ok(note) => serde_json::from_slice(&note).unwrap_or_else(|_| SandboxPart::ALL.into()),
        Err(_) => SandboxPart::ALL.into(),
    }
}

fn note_granted(data_dir: &Path, parts: &BTreeSet<SandboxPart>) -> io::Result<()> {
    let draft = data_dir.join(format!(".{GRANTED_BEFORE}.new"));
    std::fs::write(&draft, serde_json::to_vec(parts)?)?;
    std::fs::rename(&draft, data_dir.join(GRANTED_BEFORE))
}

async fn granted(dir: PathBuf, tracing: Tracing, required: BTreeSet<SandboxPart>) -> SandboxState {
    let tried = tokio::task::spawn_blocking(move || try_sandbox(&dir, tracing, &required));
    match tokio::time::timeout(TRY_WITHIN, tried).await {
        Ok(Ok(granted)) => granted,
        Ok(Err(error)) => SandboxState::None { reason: format!("the test of the sandbox failed: {error}") },
        Err(_) => SandboxState::None {
            reason: format!("the test of the sandbox took longer than {} s", TRY_WITHIN.as_secs()),
        },
    }
}

fn shown(protected: Protected) -> Protection {
    match protected {
        Protected::Held(by) => Protection::Held { by },
        Protected::Open(why) => Protection::Open { why },
    }
}

impl SandboxSetup {
    /// The warning for an operator whose settings ask for a sandbox that the system does not grant.
    pub(crate) fn warning(&self) -> Option<String> {
        let reason = self.missing().filter(|_| self.setting != SandboxSetting::Off)?;
        Some(match self.required() {
            None => format!(
                "this system does not support the sandbox ({reason}), so agents can read the data directory \
                 and the operator's token in it; see docs/configuration.md"
            ),
            Some(_) => format!(
                "no agent can start, because this system does not support a required part of the sandbox \
                 ({reason}); {}",
                self.remedy()
            ),
        })
    }

    /// Returns an error if no child may be started because a required sandbox is missing.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.missing() {
            Some(reason) if self.required().is_some() => {
                let message = format!(
                    "no agent can start, because this system does not support a required part of the sandbox \
                     ({reason}); {}",
                    self.remedy()
                );
                Err(Error::new(ErrorKind::NoSandbox, message))
            }
            _ => Ok(()),
        }
    }

    /// Adds the sandbox of the session's process to a view; without a process, the sandbox that its next one will get.
    pub(crate) fn show(&self, view: &mut SessionView, latest: &RunDir) {
        let granted = &self.granted;
        let state = match view.pid {
            None => granted.clone(),
            Some(_) => match (read_sandbox(latest), granted) {
                (Some(state), _) => state,
                (None, SandboxState::None { .. }) => granted.clone(),
                (None, SandboxState::Namespaces { .. }) => {
                    SandboxState::None { reason: "its process has not reported a sandbox".to_owned() }
                }
            },
        };
        match state {
            SandboxState::Namespaces { signals, terminals, descriptors, memory, parts: _ } => {
                view.wall = Some(SandboxKind::Namespaces);
                view.sandbox = Some(SandboxView {
                    signals: shown(signals),
                    terminals: shown(terminals),
                    descriptors: shown(descriptors),
                    memory: shown(memory),
                });
            }
            SandboxState::None { reason } => {
                view.wall = Some(SandboxKind::None);
                view.wall_missing = Some(reason);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(setting: SandboxSetting, granted: SandboxState, dir: &Path) -> SandboxSetup {
        SandboxSetup::new(dir.to_owned(), setting, granted, granted_before(dir))
    }

    fn refused() -> SandboxState {
        SandboxState::None { reason: "no namespaces are left".to_owned() }
    }

    fn granted(parts: &[SandboxPart]) -> SandboxState {
        let held = || Protected::Held("a test".to_owned());
        SandboxState::Namespaces {
            parts: parts.iter().copied().collect(),
            signals: held(),
            terminals: held(),
            descriptors: held(),
            memory: held(),
        }
    }

    #[test]
    fn a_part_that_was_granted_once_is_required_from_then_on() {
        use SandboxPart::{Files, Processes, Signals, Terminals};

        let dir = tempfile::tempdir().unwrap();
        let wanted = |granted| setup(SandboxSetting::Wanted, granted, dir.path());
        assert_eq!(wanted(refused()).required(), None, "no part was ever granted");
        let required = |granted| wanted(granted).required().map(Vec::from_iter);
        assert_eq!(required(granted(&[Files, Signals])), Some(vec![Files, Signals]));
        assert_eq!(required(granted(&[Files, Terminals, Processes])).unwrap().len(), 4, "parts are added");
        assert_eq!(required(granted(&[Files])).unwrap().len(), 4, "parts are never removed");
        let lost = wanted(refused());
        assert!(lost.required().unwrap().contains(&Processes), "an agent may have used up the namespaces");
        assert!(lost.remedy().contains("plexus down") && lost.remedy().contains("sandboxed"));
        let around = lost.around(None).expect("the hub's helpers need it as well");
        assert_eq!((around.hide.as_path(), around.inode), (dir.path(), Inode::of(dir.path()).ok()));
        assert_eq!(setup(SandboxSetting::Off, refused(), dir.path()).required(), None);
        std::fs::remove_file(dir.path().join("sandboxed")).unwrap();
        assert_eq!(wanted(refused()).required(), None, "the operator accepts what the system grants");
    }

    #[test]
    fn an_unreadable_note_requires_every_part() {
        let dir = tempfile::tempdir().unwrap();
        let noted = |content: &str| {
            std::fs::write(dir.path().join(GRANTED_BEFORE), content).unwrap();
            granted_before(dir.path()).len()
        };
        assert_eq!(noted(""), 1, "an older version noted that the files were hidden");
        assert_eq!(noted(r#"["files","processes"]"#), 2);
        for unknown in ["{", r#"["files","tomorrow"]"#] {
            assert_eq!(noted(unknown), SandboxPart::ALL.len());
        }
    }
}
