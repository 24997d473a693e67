//! `[notify]` of `plexus.toml`: notifications for an operator who is not watching.

use plexus_core::{NotifyBy, NotifySettings, TurnNotices};
use serde::Deserialize;

use crate::error::ExpectedError;

/// The default age of an approval at which the operator is notified, in seconds.
const APPROVAL_AFTER_SECS: u64 = 60;

/// `[notify]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NotifyTable {
    command: Option<Vec<String>>,
    desktop: bool,
    approval_after_secs: Option<u64>,
    turns: TurnsName,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TurnsName {
    All,
    #[default]
    Failed,
    Off,
}

impl NotifyTable {
    /// `None` if no way of notification is configured.
    pub(super) fn settings(self) -> Result<Option<NotifySettings>, ExpectedError> {
        if self.command.as_ref().is_some_and(|words| words.first().is_none_or(String::is_empty)) {
            let message = "`command` under [notify] in plexus.toml names no program; use one such as [\"/usr/bin/logger\"]";
            return Err(ExpectedError::Settings(message.to_owned()));
        }
        let by: Vec<NotifyBy> = self
            .command
            .map(NotifyBy::Command)
            .into_iter()
            .chain(self.desktop.then_some(NotifyBy::Desktop))
            .collect();
        Ok((!by.is_empty()).then(|| NotifySettings {
            by,
            approval_after_secs: self.approval_after_secs.unwrap_or(APPROVAL_AFTER_SECS),
            turns: match self.turns {
                TurnsName::All => TurnNotices::All,
                TurnsName::Failed => TurnNotices::Failed,
                TurnsName::Off => TurnNotices::Off,
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_notice_is_sent_unless_a_command_or_desktop_is_configured() {
        let read = |text: &str| toml::from_str::<NotifyTable>(text).unwrap().settings();
        assert_eq!(read("turns = \"all\"").unwrap(), None);
        let settings = read("desktop = true\ncommand = [\"tell\", \"me\"]").unwrap().unwrap();
        assert_eq!(
            settings.by,
            [NotifyBy::Command(vec!["tell".to_owned(), "me".to_owned()]), NotifyBy::Desktop]
        );
        assert_eq!((settings.approval_after_secs, settings.turns), (60, TurnNotices::Failed));
        assert!(read("command = []").unwrap_err().to_string().contains("[notify]"));
        assert!(toml::from_str::<NotifyTable>("turns = \"some\"").is_err());
    }
}
