//! Decides how much of a sandbox is created: all of it if the system allows that, otherwise without the denied parts,
//! unless such a part is required. This module never omits the part that hides the hub's files; the caller decides what
//! happens to a child without it.

use std::collections::BTreeSet;
use std::io;

use serde::{Deserialize, Serialize};

use super::filter::Filter;
use super::processes::{Handle, Leash};
use super::protection::{Descriptors, Protection, Tracing, memory, tracing_is_allowed};
use super::{Plan, SandboxState, Signals, c_path, paths};

/// A part of a sandbox that a system may deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxPart {
    /// The mounts that hide the hub's files, and the user namespaces that keep them in place.
    Files,
    /// Separate terminals in place of the user's.
    Terminals,
    /// The PID namespace.
    Processes,
    /// Landlock's signal scope, used without a PID namespace.
    Signals,
    /// The system call filter against tracing.
    Descriptors,
}

impl SandboxPart {
    /// All parts.
    pub const ALL: [Self; 5] =
        [Self::Files, Self::Terminals, Self::Processes, Self::Signals, Self::Descriptors];
}

/// Why a sandbox was not created.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) part: SandboxPart,
    pub(crate) reason: String,
}

/// Why a process was not started.
#[derive(Debug)]
pub(crate) enum Failed {
    /// Its sandbox could not be created.
    Sandbox(Fault),
    /// Another error.
    Start(io::Error),
}

impl Failed {
    pub(crate) fn files(reason: impl ToString) -> Self {
        Self::Sandbox(Fault { part: SandboxPart::Files, reason: reason.to_string() })
    }
}

/// The parts to attempt, and the reasons for omitting others.
#[derive(Debug, Clone)]
pub(crate) struct Enclosure {
    tracing: Tracing,
    /// The parts that must not be omitted.
    required: BTreeSet<SandboxPart>,
    no_terminals: Option<String>,
    no_namespace: Option<String>,
    no_scope: Option<String>,
    no_filter: Option<String>,
}

impl Enclosure {
    /// Attempts all parts that the setting requests.
    pub(crate) fn all(tracing: Tracing, required: &BTreeSet<SandboxPart>) -> Self {
        let required = required.clone();
        Self { tracing, required, no_terminals: None, no_namespace: None, no_scope: None, no_filter: None }
    }

    /// Calls `start` until a process starts with as many parts as the system grants, and reports those parts.
    pub(crate) fn attempt<T>(
        mut self,
        mut start: impl FnMut(&Self) -> Result<T, Failed>,
    ) -> Result<(T, SandboxState), Failed> {
        loop {
            match start(&self) {
                Ok(started) => return Ok((started, self.state())),
                Err(Failed::Sandbox(fault)) => match self.refused(fault.part) {
                    Some(reason @ None) => *reason = Some(fault.reason),
                    _ => return Err(Failed::Sandbox(fault)),
                },
                Err(failed) => return Err(failed),
            }
        }
    }

    /// The slot for the reason why a part is omitted; `None` if the part cannot be omitted.
    fn refused(&mut self, part: SandboxPart) -> Option<&mut Option<String>> {
        if self.required.contains(&part) {
            return None;
        }
        match part {
            SandboxPart::Files => None,
            SandboxPart::Terminals => Some(&mut self.no_terminals),
            SandboxPart::Processes => Some(&mut self.no_namespace),
            SandboxPart::Signals => Some(&mut self.no_scope),
            SandboxPart::Descriptors => Some(&mut self.no_filter),
        }
    }

    /// Adds the parts to a plan that hides files. The handle is the keeper's handle on the PID namespace.
    pub(crate) fn add_to(&self, mut plan: Plan) -> io::Result<(Plan, Option<Handle>)> {
        if self.no_terminals.is_none() {
            plan.terminals =
                paths::terminals()?.iter().map(|path| c_path(path)).collect::<io::Result<_>>()?;
        }
        plan.filter = self.filter();
        if self.no_namespace.is_some() {
            plan.signals = if self.no_scope.is_some() { Signals::Free } else { Signals::Scoped };
            return Ok((plan, None));
        }
        let (leash, handle) = Leash::new()?;
        plan.leash = Some(leash);
        Ok((plan, Some(handle)))
    }

    fn filter(&self) -> Option<Filter> {
        let needed = self.no_filter.is_none() && Descriptors::needed(self.tracing) == Descriptors::Filter;
        needed.then(Filter::against_tracing).flatten()
    }

    /// The parts of a created sandbox.
    fn parts(&self) -> BTreeSet<SandboxPart> {
        let optional = [
            (SandboxPart::Terminals, self.no_terminals.is_none()),
            (SandboxPart::Processes, self.no_namespace.is_none()),
            (SandboxPart::Signals, self.no_namespace.is_some() && self.no_scope.is_none()),
            (SandboxPart::Descriptors, self.filter().is_some()),
        ];
        let granted = optional.into_iter().filter_map(|(part, granted)| granted.then_some(part));
        granted.chain([SandboxPart::Files]).collect()
    }

    fn state(&self) -> SandboxState {
        let signals = match (&self.no_namespace, &self.no_scope) {
            (None, _) => Protection::Held("a PID namespace".to_owned()),
            (Some(reason), None) => Protection::Held(format!("Landlock; {reason}")),
            (Some(reason), Some(other)) => Protection::Open(format!("{reason}; {other}")),
        };
        let descriptors = match (Descriptors::needed(self.tracing), &self.no_filter) {
            (Descriptors::Nothing, _) => tracing_is_allowed(),
            (Descriptors::System(by), _) => Protection::Held(by),
            (Descriptors::Filter, Some(reason)) => Protection::Open(reason.clone()),
            (Descriptors::Filter, None) if Filter::against_tracing().is_none() => {
                Protection::Open("Plexus has no system call filter for this processor".to_owned())
            }
            (Descriptors::Filter, None) => Protection::Held("a system call filter".to_owned()),
        };
        let terminals = match &self.no_terminals {
            None => Protection::Held("private terminals".to_owned()),
            Some(reason) => Protection::Open(reason.clone()),
        };
        SandboxState::Namespaces {
            parts: self.parts(),
            signals,
            terminals,
            descriptors,
            memory: memory(self.tracing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusing<'a>(
        refused: &'a [(SandboxPart, &'a str)],
    ) -> impl FnMut(&Enclosure) -> Result<(), Failed> + 'a {
        let mut refused = refused.iter();
        move |_| match refused.next() {
            Some((part, reason)) => Err(Failed::Sandbox(Fault { part: *part, reason: (*reason).to_owned() })),
            None => Ok(()),
        }
    }

    fn all() -> Enclosure {
        Enclosure::all(Tracing::Denied, &BTreeSet::new())
    }

    fn signals_after(refused: &[(SandboxPart, &str)]) -> Protection {
        match all().attempt(refusing(refused)).unwrap().1 {
            SandboxState::Namespaces { signals, .. } => signals,
            state @ SandboxState::None { .. } => panic!("{state:?}"),
        }
    }

    #[test]
    fn an_unavailable_part_is_skipped_and_reported_with_its_reason() {
        assert_eq!(signals_after(&[]), Protection::Held("a PID namespace".to_owned()));
        let masked = (SandboxPart::Processes, "it is masked");
        assert_eq!(signals_after(&[masked]), Protection::Held("Landlock; it is masked".to_owned()));
        let old = (SandboxPart::Signals, "too old");
        assert_eq!(signals_after(&[masked, old]), Protection::Open("it is masked; too old".to_owned()));
    }

    #[test]
    fn a_required_part_is_not_left_out() {
        for part in SandboxPart::ALL {
            let enclosure = Enclosure::all(Tracing::Denied, &BTreeSet::from([part]));
            let Err(Failed::Sandbox(fault)) = enclosure.attempt(refusing(&[(part, "used up")])) else {
                panic!("{part:?}")
            };
            assert_eq!((fault.part, fault.reason.as_str()), (part, "used up"));
        }
        let others = BTreeSet::from([SandboxPart::Files, SandboxPart::Terminals]);
        let enclosure = Enclosure::all(Tracing::Denied, &others);
        assert!(enclosure.attempt(refusing(&[(SandboxPart::Processes, "it is masked")])).is_ok());
    }

    #[test]
    fn the_sandbox_state_lists_the_granted_parts() {
        let parts = |refused: &[(SandboxPart, &str)]| match all().attempt(refusing(refused)).unwrap().1 {
            SandboxState::Namespaces { parts, .. } => parts,
            state @ SandboxState::None { .. } => panic!("{state:?}"),
        };
        let has = |parts: &BTreeSet<_>| {
            [SandboxPart::Files, SandboxPart::Terminals, SandboxPart::Processes, SandboxPart::Signals]
                .map(|part| parts.contains(&part))
        };
        assert_eq!(has(&parts(&[])), [true, true, true, false]);
        let masked = (SandboxPart::Processes, "it is masked");
        assert_eq!(has(&parts(&[masked])), [true, true, false, true]);
        let (none, old) = ((SandboxPart::Terminals, "none"), (SandboxPart::Signals, "too old"));
        assert_eq!(has(&parts(&[none, masked, old])), [true, false, false, false]);
    }

    #[test]
    fn a_part_that_fails_twice_or_hides_the_files_fails_the_attempt() {
        let masked = (SandboxPart::Processes, "it is masked");
        for refused in [&[masked, masked][..], &[(SandboxPart::Files, "no")]] {
            assert!(all().attempt(refusing(refused)).is_err());
        }
    }
}
