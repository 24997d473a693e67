//! Identifiers, each with a type of its own, so that they cannot be confused.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $new:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id that no other has.
            pub fn random() -> Self {
                Self(Uuid::$new())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

uuid_id! {
    /// The permanent id of a session.
    SessionId, new_v4
}
uuid_id! {
    /// The id of an approval. A few of its first characters identify it for a person, so it does not start with the time.
    ApprovalId, new_v4
}
uuid_id! {
    /// The id of a conversation tree.
    TreeId, new_v4
}
uuid_id! {
    /// The id of a node in a conversation tree. It starts with the time: nodes are many, and new entries of an index that are next to each
    /// other change few of its pages.
    NodeId, now_v7
}

uuid_id! {
    /// The id of a command, which is a call that another host executes. It starts with the time, as that of a node.
    CommandId, now_v7
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        name! { $(#[$doc])* $name, "a name must have 1 to 64 letters, digits, `-`, `_` or `.`", '-' | '_' | '.' }
    };
    ($(#[$doc:meta])* $name:ident, $rule:literal, $others:pat) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, $others);
                if text.is_empty() || text.len() > 64 || !text.chars().all(allowed) {
                    return Err($rule.to_owned());
                }
                Ok(Self(text))
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// The name of a session: 1 to 64 letters, digits, `-`, `_` or `.`; unique among the existing sessions
    /// of one creator.
    SessionName
}
name! {
    /// The name of a token that the operator created: 1 to 64 letters, digits, `-`, `_` or `.`; unique among
    /// tokens in use.
    TokenName
}

name! {
    /// The name of a template: 1 to 64 letters, digits, `-`, `_` or `.`.
    TemplateName
}

name! {
    /// The name of a host, which is a machine with a hub: 1 to 64 letters, digits, `-`, `_` or `.`.
    HostName
}

name! {
    /// A label of a host, such as `gpu` or `team=a`: 1 to 64 letters, digits, `-`, `_`, `.` or `=`. Labels are compared as a whole.
    HostLabel, "a label must have 1 to 64 letters, digits, `-`, `_`, `.` or `=`", '-' | '_' | '.' | '='
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_names_are_limited_in_length_and_characters() {
        for good in ["a", "my-agent_2.0", &"x".repeat(64)] {
            assert!(SessionName::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in ["", "a b", "../up", "ä", &"x".repeat(65)] {
            assert!(SessionName::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_label_may_have_a_value() {
        assert!(HostLabel::try_from("team=a".to_owned()).is_ok());
        for bad in ["", "team = a", "gpu,linux", &"x".repeat(65)] {
            assert!(HostLabel::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
