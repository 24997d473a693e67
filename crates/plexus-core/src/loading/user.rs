//! The part of the user's own Claude Code settings that children receive. The hub reads them when it starts and when
//! the operator requests it, never in between.
//!
//! A command of a child can write the settings file. The hub therefore keeps the accepted settings in the data
//! directory. Of later changes, only additional denials take effect until the operator accepts the rest.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use plexus_policy::{RuleEffect, RuleEntry};

use super::private_file;
use super::user_file::{FromUser, differences, read};
use crate::policy::Restriction;
use crate::processes::files::Files;

/// The user's settings in effect, or the reason why they are unusable.
pub(crate) type LoadedSettings = Result<FromUser, String>;

/// The user's settings of one hub.
pub(crate) struct UserSettings {
    /// The settings file; `None` if the hub does not use it.
    file: Option<PathBuf>,
    /// The file with the accepted settings.
    accepted_file: PathBuf,
    effective: Mutex<LoadedSettings>,
}

impl UserSettings {
    /// Determines the settings in effect when a hub starts.
    pub(crate) async fn at_start(file: Option<PathBuf>, data_dir: &Path, files: &Files) -> Self {
        let current = match &file {
            Some(file) => read(files, file).await,
            None => Ok(FromUser::default()),
        };
        Self::from_content(file, data_dir, current)
    }

    /// Determines the settings in effect when a hub starts and the file contains `current`.
    fn from_content(file: Option<PathBuf>, data_dir: &Path, current: LoadedSettings) -> Self {
        let accepted_file = data_dir.join("user-settings.json");
        let effective = match &file {
            Some(_) => current.clone().and_then(|current| effective_at_start(&current, &accepted_file)),
            None => Ok(FromUser::default()),
        };
        let user = Self { file, accepted_file, effective: Mutex::new(effective) };
        match user.changed(current) {
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
    pub(crate) fn effective(&self) -> LoadedSettings {
        self.lock().clone()
    }

    /// The current content of the file.
    pub(crate) async fn current(&self, files: &Files) -> LoadedSettings {
        match &self.file {
            Some(file) => read(files, file).await,
            None => Ok(FromUser::default()),
        }
    }

    /// The names of the changes in `current` that the operator has not accepted.
    pub(crate) fn changed(&self, current: LoadedSettings) -> Result<Vec<String>, String> {
        let (current, effective) = (current?, self.effective()?);
        Ok(differences(&effective, &current))
    }

    /// Accepts the whole current content of the file.
    pub(crate) fn accept(&self, current: LoadedSettings) -> Result<(), String> {
        if self.file.is_none() {
            return Ok(());
        }
        let current = current?;
        private_file::store(&self.accepted_file, &current)?;
        *self.lock() = Ok(current);
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
        let effective = self.effective()?;
        let rule =
            |text: &String| RuleEntry::parse(text, RuleEffect::Deny).map_err(|error| error.to_string());
        effective.deny.iter().map(rule).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LoadedSettings> {
        self.effective.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The settings in effect when a hub starts. New denials take effect immediately and permanently.
fn effective_at_start(current: &FromUser, accepted_file: &Path) -> LoadedSettings {
    let before = match std::fs::read(accepted_file) {
        Ok(text) => Some(
            serde_json::from_slice::<FromUser>(&text)
                .map_err(|error| format!("{}: {error}", accepted_file.display()))?,
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("{}: {error}", accepted_file.display())),
    };
    let effective = match &before {
        None => current.clone(),
        Some(before) => {
            let deny = before.deny.union(&current.deny).cloned().collect();
            FromUser { deny, ..before.clone() }
        }
    };
    if before.as_ref() != Some(&effective) {
        private_file::store(accepted_file, &effective)?;
    }
    Ok(effective)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::loading::user_file::parse;

    /// The content of the file, if it exists.
    fn current(file: &Path) -> LoadedSettings {
        parse(file, std::fs::read(file).ok().as_deref())
    }

    #[test]
    fn only_new_denials_take_effect_before_a_change_is_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        let start = || UserSettings::from_content(Some(file.clone()), dir.path(), current(&file));
        let write = |helper: &str, deny: &str| {
            let settings = json!({"model": "opus", "apiKeyHelper": helper, "permissions": {"deny": [deny]}});
            std::fs::write(&file, settings.to_string()).unwrap();
        };
        write("key", "Bash(rm:*)");
        let first = start().effective().unwrap();
        write("evil", "WebFetch");
        let user = start();
        let effective = user.effective().unwrap();
        assert_eq!(effective.deny, ["Bash(rm:*)", "WebFetch"].map(str::to_owned).into());
        assert!(FromUser { deny: first.deny.clone(), ..effective } == first, "the rest is as it was");
        assert_eq!(user.changed(current(&file)).unwrap(), ["apiKeyHelper", "permissions.deny"]);
        // A denial stays in effect, even when the file no longer contains it.
        std::fs::remove_file(&file).unwrap();
        assert_eq!(start().rules().unwrap().len(), 2);
        user.accept(current(&file)).unwrap();
        assert!(user.effective().unwrap() == FromUser::default());
        assert!(start().effective().unwrap() == FromUser::default());
    }

    #[test]
    fn unreadable_settings_deny_every_call() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("settings.json");
        std::fs::write(&file, "{").unwrap();
        let user = UserSettings::from_content(Some(file.clone()), dir.path(), current(&file));
        assert!(matches!(user.restriction(), Restriction::Broken(_)) && user.accept(current(&file)).is_err());
        std::fs::write(&file, "{}").unwrap();
        std::fs::write(dir.path().join("user-settings.json"), "rubbish").unwrap();
        let user = UserSettings::from_content(Some(file.clone()), dir.path(), current(&file));
        assert!(user.effective().is_err(), "unreadable stored settings are an error, too");
        user.accept(current(&file)).unwrap();
        assert!(user.effective().is_ok());
    }
}
