//! The deny rules of the user's own Claude Code settings. They apply to every session.

use std::path::{Path, PathBuf};

use plexus_policy::RuleEntry;

/// The calls that the user's settings deny to every session.
pub(crate) enum Restriction {
    /// These calls are denied. A path that starts with `/` is relative to the directory of the settings file
    /// (`beside`), any other path to the working directory of the session.
    Rules { rules: Vec<RuleEntry>, beside: Option<PathBuf> },
    /// The settings cannot be used, for this reason: no call is allowed.
    Broken(String),
}

impl Default for Restriction {
    fn default() -> Self {
        Self::Rules { rules: Vec::new(), beside: None }
    }
}

impl Restriction {
    /// The rules for a session with working directory `dir`. Each path is resolved against both bases and denies both.
    pub(crate) fn rules_in(&self, dir: &Path, home: Option<&Path>) -> Result<Vec<RuleEntry>, String> {
        match self {
            Self::Broken(why) => Err(why.clone()),
            Self::Rules { rules, beside } => {
                let bases = std::iter::once(dir).chain(beside.as_deref());
                Ok(bases.flat_map(|base| rules.iter().map(move |rule| rule.anchored(base, home))).collect())
            }
        }
    }
}
