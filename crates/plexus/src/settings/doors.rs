//! `[doors]` of `plexus.toml`: time limits for peers, and limits on what the hub holds for them.

use std::time::Duration;

use plexus_server::{DoorLimits, HEARTBEAT};
use serde::Deserialize;

use super::seconds;
use crate::error::ExpectedError;

const MIB: usize = 1024 * 1024;

/// `[doors]`.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DoorsTable {
    handshake_secs: Option<f64>,
    head_secs: Option<f64>,
    body_stall_secs: Option<f64>,
    body_secs: Option<f64>,
    write_stall_secs: Option<f64>,
    heartbeat_secs: Option<f64>,
    waiting: Option<usize>,
    calls_per_caller: Option<usize>,
    calls: Option<usize>,
    bodies_per_caller_mb: Option<usize>,
    bodies_mb: Option<usize>,
}

impl DoorsTable {
    pub(super) fn limits(self) -> Result<DoorLimits, ExpectedError> {
        let usual = DoorLimits::default();
        let time = |key, given, usual: Duration| seconds(key, given, usual.as_secs_f64());
        Ok(DoorLimits {
            handshake: time("handshake_secs", self.handshake_secs, usual.handshake)?,
            head: time("head_secs", self.head_secs, usual.head)?,
            body_stall: time("body_stall_secs", self.body_stall_secs, usual.body_stall)?,
            body: time("body_secs", self.body_secs, usual.body)?,
            write_stall: time("write_stall_secs", self.write_stall_secs, usual.write_stall)?,
            heartbeat: heartbeat(time("heartbeat_secs", self.heartbeat_secs, usual.heartbeat)?)?,
            waiting: count("waiting", self.waiting, usual.waiting)?,
            calls_per_caller: count("calls_per_caller", self.calls_per_caller, usual.calls_per_caller)?,
            calls: count("calls", self.calls, usual.calls)?,
            bytes_per_caller: megabytes(
                "bodies_per_caller_mb",
                self.bodies_per_caller_mb,
                usual.bytes_per_caller,
            )?,
            bytes: megabytes("bodies_mb", self.bodies_mb, usual.bytes)?,
        })
    }
}

/// Clients treat a hub as disconnected if it is silent for longer than the default.
fn heartbeat(given: Duration) -> Result<Duration, ExpectedError> {
    if given > HEARTBEAT {
        let most = HEARTBEAT.as_secs();
        return Err(ExpectedError::Settings(format!(
            "`heartbeat_secs` under [doors] in plexus.toml is at most {most}: clients treat a hub that is silent for longer as disconnected"
        )));
    }
    Ok(given)
}

fn count(key: &str, given: Option<usize>, usual: usize) -> Result<usize, ExpectedError> {
    match given {
        Some(0) => {
            Err(ExpectedError::Settings(format!("`{key}` under [doors] in plexus.toml must be at least 1")))
        }
        given => Ok(given.unwrap_or(usual)),
    }
}

/// At least the size of the largest request.
fn megabytes(key: &str, given: Option<usize>, usual: usize) -> Result<usize, ExpectedError> {
    let least = plexus_protocol::MAX_BODY_BYTES / MIB;
    match given {
        Some(mb) if mb < least => Err(ExpectedError::Settings(format!(
            "`{key}` under [doors] in plexus.toml is at least {least}: one request may be that large"
        ))),
        given => Ok(given.map_or(usual, |mb| mb.saturating_mul(MIB))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(text: &str) -> Result<DoorLimits, String> {
        let table: DoorsTable = toml::from_str(text).map_err(|error| error.to_string())?;
        table.limits().map_err(|error| error.to_string())
    }

    #[test]
    fn every_limit_has_a_default_and_can_be_set() {
        assert_eq!(limits("").unwrap(), DoorLimits::default());
        let set = limits("head_secs = 0.5\nwaiting = 3\nbodies_mb = 16\n").unwrap();
        assert_eq!((set.head, set.waiting, set.bytes), (Duration::from_millis(500), 3, 16 * MIB));
    }

    #[test]
    fn a_limit_that_admits_nothing_is_rejected_by_name() {
        for (wrong, named) in [
            ("waiting = 0", "`waiting`"),
            ("calls = 0", "`calls`"),
            ("bodies_mb = 15", "at least 16"),
            ("head_secs = 0", "`head_secs`"),
            ("heartbeat_secs = 10", "at most 3"),
            ("head_sec = 1", "head_sec"),
        ] {
            let refused = limits(wrong).unwrap_err();
            assert!(refused.contains(named), "{wrong}: {refused}");
        }
    }
}
