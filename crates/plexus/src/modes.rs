//! Parsers of the values of `--mode` and `--policy`, so that an invalid value is rejected before a hub is started. The names
//! themselves are declared in the protocol.

use plexus_protocol::claudecode::{PermissionMode, PolicyName};

use crate::suggest::closest;

const MODES: [PermissionMode; 3] =
    [PermissionMode::Default, PermissionMode::AcceptEdits, PermissionMode::Plan];
const POLICIES: [PolicyName; 5] = [
    PolicyName::OwnCourse,
    PolicyName::AskAll,
    PolicyName::Approvals,
    PolicyName::Plan,
    PolicyName::AllowAll,
];

/// The permission mode with this name, as the hub spells it.
pub(crate) fn permission_mode(text: &str) -> Result<String, String> {
    match PermissionMode::named(text) {
        Some(mode) => Ok(mode.as_str().to_owned()),
        None if text == "bypassPermissions" => {
            Err("no mode bypasses the gate; the policy `allow_all` allows every call, with an audit entry"
                .to_owned())
        }
        None => Err(unknown(text, &MODES.map(PermissionMode::as_str))),
    }
}

/// The policy with this name.
pub(crate) fn policy(text: &str) -> Result<String, String> {
    let names = POLICIES.map(PolicyName::as_str);
    // The wire has underscores; the command line also takes hyphens.
    let name = text.replace('-', "_");
    if names.contains(&name.as_str()) { Ok(name) } else { Err(unknown(text, &names)) }
}

fn unknown(text: &str, names: &[&str]) -> String {
    match closest(text, names.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("expected one of {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_accepted_and_others_get_a_suggestion() {
        assert_eq!(permission_mode("acceptEdits").as_deref(), Ok("acceptEdits"));
        assert_eq!(permission_mode("manual").as_deref(), Ok("default"));
        assert_eq!(permission_mode("acceptedits"), Err("did you mean `acceptEdits`?".to_owned()));
        assert_eq!(permission_mode("yolo"), Err("expected one of default, acceptEdits, plan".to_owned()));
        assert!(permission_mode("bypassPermissions").unwrap_err().contains("`allow_all`"));
        assert_eq!(policy("ask-all").as_deref(), Ok("ask_all"));
        assert_eq!(policy("alow_all"), Err("did you mean `allow_all`?".to_owned()));
    }
}
