//! The part of the user's own Claude Code settings that children receive. The hub reads them when it starts and when
//! the operator requests it, never in between.
//!
//! A command of a child can write the settings file. The hub therefore keeps the accepted settings in the data
//! directory. Of later changes, only additional denials take effect until the operator accepts the rest.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use plexus_policy::{RuleEffect, RuleEntry};

use super::user_file::{FromUser, differences, read};
use crate::files::Files;
use crate::policy::Restriction;

/// The user's settings in effect, or the reason why they are unusable.
pub(crate) type Counting = Result<FromUser, String>;

/// The user's settings of one hub.
pub(crate) struct UserSettings {
    /// The settings file; `None` if the hub does not use it.
    file: Option<PathBuf>,
    /// The file with the accepted settings.
    kept: PathBuf,
    counting: Mutex<Counting>,
}

impl UserSettings {
    /// Determines the settings in effect when a hub starts.
    pub(crate) async fn at_start(file: Option<PathBuf>, data_dir: &Path, files: &Files) -> Self {
        let now = match &file {
            Some(file) => read(files, file).await,
            None => Ok(FromUser::default()),
        };
        Self::with(file, data_dir, now)
    }

    /// Determines the settings in effect when a hub starts and the file contains `now`.
    fn with(file: Option<PathBuf>, data_dir: &Path, now: Counting) -> Self {
        let kept = data_dir.join("user-settings.json");
        let counting = match &file {
            Some(_) => now.clone().and_then(|now| taken_up(&now, &kept)),
            None => Ok(FromUser::default()),
        };
        let user = Self { file, kept, counting: Mutex::new(counting) };
        match user.changed(now) {
            Ok(changed) if changed.is_empty() => {}
            Ok(changed) => tracing::warn!(
                changed = changed.join(", "),
                "the user's settings have changed; `plexus claudecode user_settings --accept true` applies \
                 the changes"
            ),
            Err(why) => tracing::error!(
                why,
                "the user's settings are invalid: no agent can start, and every call is denied"
            ),
        }
        user
    }

    /// The settings file; `None` if the hub does not use it.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The settings in effect.
    pub(crate) fn counting(&self) -> Counting {
        self.lock().clone()
    }

    /// The current content of the file.
    pub(crate) async fn now(&self, files: &Files) -> Counting {
        match &self.file {
            Some(file) => read(files, file).await,
            None => Ok(FromUser::default()),
        }
    }

    /// The names of the changes in `now` that the operator has not accepted.
    pub(crate) fn changed(&self, now: Counting) -> Result<Vec<String>, String> {
        let (now, counting) = (now?, self.counting()?);
        Ok(differences(&counting, &now))
    }

    /// Accepts the whole current content of the file.
    pub(crate) fn accept(&self, now: Counting) -> Result<(), String> {
        if self.file.is_none() {
            return Ok(());
        }
        let now = now?;
        keep(&self.kept, &now)?;
        *self.lock() = Ok(now);
        Ok(())
    }

    /// The restriction that the gate applies to every session.
    pub(crate) fn restriction(&self) -> Restriction {
        match self.rules() {
            Ok(rules) => {
                let beside = self.file.as_deref().and_then(Path::parent).map(Path::to_owned);
                Restriction::Rules { rules, beside }
            }
            Err(why) => Restriction::Broken(format!("the user's settings are invalid: {why}")),
        }
    }

    fn rules(&self) -> Result<Vec<RuleEntry>, String> {
        let counting = self.counting()?;
        let rule =
            |text: &String| RuleEntry::parse(text, RuleEffect::Deny).map_err(|error| error.to_string());
        counting.deny.iter().map(rule).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Counting> {
        self.counting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The settings in effect when a hub starts. New denials take effect immediately and permanently.
fn taken_up(now: &FromUser, kept: &Path) -> Counting {
    let before = match std::fs::read(kept) {
        Ok(text) => Some(
            serde_json::from_slice::<FromUser>(&text)
                .map_err(|error| format!("{}: {error}", kept.display()))?,
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("{}: {error}", kept.display())),
    };
    let counting = match &before {
        None => now.clone(),
        Some(before) => {
            let deny = before.deny.union(&now.deny).cloned().collect();
            FromUser { deny, ..before.clone() }
        }
    };
    if before.as_ref() != Some(&counting) {
        keep(kept, &counting)?;
    }
    Ok(counting)
}

/// Stores the accepted settings atomically.
fn keep(kept: &Path, taken: &FromUser) -> Result<(), String> {
    let write = || -> io::Result<()> {
        let draft = kept.with_extension("tmp");
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(&serde_json::to_vec(taken)?)?;
        file.sync_all()?;
        std::fs::rename(&draft, kept)
    };
    write().map_err(|error| format!("{}: {error}", kept.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::loading::user_file::parse;

    /// The content of the file, if it exists.
    fn now(file: &Path) -> Counting {
        parse(file, std::fs::read(file).ok().as_deref())
    }

    #[test]
    fn of_what_changes_only_denials_count_until_it_is_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        let start = || UserSettings::with(Some(file.clone()), dir.path(), now(&file));
        let write = |helper: &str, deny: &str| {
            let settings = json!({"model": "opus", "apiKeyHelper": helper, "permissions": {"deny": [deny]}});
            std::fs::write(&file, settings.to_string()).unwrap();
        };
        write("key", "Bash(rm:*)");
        let first = start().counting().unwrap();
        write("evil", "WebFetch");
        let user = start();
        let counting = user.counting().unwrap();
        assert_eq!(counting.deny, ["Bash(rm:*)", "WebFetch"].map(str::to_owned).into());
        assert!(FromUser { deny: first.deny.clone(), ..counting } == first, "the rest is as it was");
        assert_eq!(user.changed(now(&file)).unwrap(), ["apiKeyHelper", "permissions.deny"]);
        // A denial stays in effect, even when the file no longer contains it.
        std::fs::remove_file(&file).unwrap();
        assert_eq!(start().rules().unwrap().len(), 2);
        user.accept(now(&file)).unwrap();
        assert!(user.counting().unwrap() == FromUser::default());
        assert!(start().counting().unwrap() == FromUser::default());
    }

    #[test]
    fn what_cannot_be_read_restricts_to_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        std::fs::write(&file, "{").unwrap();
        let user = UserSettings::with(Some(file.clone()), dir.path(), now(&file));
        assert!(matches!(user.restriction(), Restriction::Broken(_)) && user.accept(now(&file)).is_err());
        std::fs::write(&file, "{}").unwrap();
        std::fs::write(dir.path().join("user-settings.json"), "rubbish").unwrap();
        let user = UserSettings::with(Some(file.clone()), dir.path(), now(&file));
        assert!(user.counting().is_err(), "nor is what was kept passed over");
        user.accept(now(&file)).unwrap();
        assert!(user.counting().is_ok());
    }
}
