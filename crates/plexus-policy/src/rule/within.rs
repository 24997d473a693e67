//! Whether the text of one rule is contained in the text of another. This gives the creator of a rule an early answer.
//! It decides no call, because a rule that names an option such as `-exec` allows calls that a wider `:*` does not.

use super::{Rule, Specifier};
use crate::command_pattern::{BETWEEN, CommandPattern, Tail};
use crate::tools;
use crate::wildcard::{matches, name_matches};

impl Rule {
    /// Whether `wider` names everything that this rule names. In doubt it returns false.
    pub fn is_within(&self, wider: &Self) -> bool {
        if wider.tool == "*" || self == wider {
            return true;
        }
        match (&self.specifier, &wider.specifier) {
            (_, Specifier::Whole) => tool_within(&self.tool, &wider.tool),
            (Specifier::Command(narrow), Specifier::Command(wide)) => {
                tools::same(&self.tool, &wider.tool) && command_within(narrow, wide)
            }
            (Specifier::Path(a, narrow), Specifier::Path(b, wide)) => a == b && narrow.is_within(wide),
            (Specifier::Domain(narrow), Specifier::Domain(wide)) => {
                wide.strip_prefix('*').is_some_and(|end| {
                    narrow.ends_with(end) && narrow.trim_start_matches("*.").len() > end.len() - 1
                })
            }
            (Specifier::Name(narrow), Specifier::Name(wide)) => {
                tools::same(&self.tool, &wider.tool) && !narrow.contains('*') && name_matches(wide, narrow)
            }
            _ => false,
        }
    }
}

fn tool_within(narrow: &str, wide: &str) -> bool {
    if tools::covers(wide, narrow) {
        return true;
    }
    // `mcp__a__b*` lies within `mcp__a__*`: the text before the first wildcard decides.
    match (narrow.split_once('*'), wide.strip_suffix('*')) {
        (Some((start, _)), Some(prefix)) => !prefix.contains('*') && start.starts_with(prefix),
        (None, Some(_)) => name_matches(wide, narrow),
        _ => {
            narrow.strip_prefix(wide).is_some_and(|rest| wide.starts_with("mcp__") && rest.starts_with("__"))
        }
    }
}

fn command_within(narrow: &CommandPattern, wide: &CommandPattern) -> bool {
    let exact = narrow.segments.len() == 1 && narrow.tail == Tail::End;
    let start = narrow.segments.first().map_or("", String::as_str);
    match (wide.segments.as_slice(), wide.tail) {
        (segments, Tail::End) => exact && matches(segments, start),
        ([prefix], Tail::Words) => match start.strip_prefix(prefix.as_str()) {
            Some("") => narrow.segments.len() == 1,
            Some(rest) => rest.starts_with(BETWEEN),
            None => false,
        },
        _ => false,
    }
}
