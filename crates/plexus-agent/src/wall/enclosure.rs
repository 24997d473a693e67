//! How much of a sandbox is created: all of it where the system grants that, else without the part that was refused. Only the
//! part that hides the hub's files cannot be left out here; what then becomes of the child is the caller's to decide.

use std::io;

use super::filter::Filter;
use super::processes::{Handle, Leash};
use super::protection::{Descriptors, Protection, Tracing, memory, tracing_is_allowed};
use super::{Plan, Signals, Walled, c_path, paths};

/// A part of a sandbox that a system may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Files,
    /// Terminals of its own, in place of the user's.
    Terminals,
    /// The PID namespace.
    Processes,
    /// What is done about signals without one.
    Signals,
    Descriptors,
}

/// Why a sandbox was not created.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) part: Part,
    pub(crate) reason: String,
}

/// Why a process was not started.
#[derive(Debug)]
pub(crate) enum Failed {
    /// Its sandbox.
    Sandbox(Fault),
    /// Anything else.
    Start(io::Error),
}

impl Failed {
    pub(crate) fn files(reason: impl ToString) -> Self {
        Self::Sandbox(Fault { part: Part::Files, reason: reason.to_string() })
    }
}

/// The parts that are attempted, and why others are not.
#[derive(Debug, Clone)]
pub(crate) struct Enclosure {
    tracing: Tracing,
    no_terminals: Option<String>,
    no_namespace: Option<String>,
    no_scope: Option<String>,
    no_filter: Option<String>,
}

impl Enclosure {
    /// Everything that the setting asks for.
    pub(crate) fn all(tracing: Tracing) -> Self {
        Self { tracing, no_terminals: None, no_namespace: None, no_scope: None, no_filter: None }
    }

    /// Has `start` start a process with as much as the system grants, and reports what that is.
    pub(crate) fn attempt<T>(
        mut self,
        mut start: impl FnMut(&Self) -> Result<T, Failed>,
    ) -> Result<(T, Walled), Failed> {
        loop {
            match start(&self) {
                Ok(started) => return Ok((started, self.walled())),
                Err(Failed::Sandbox(fault)) => match self.refused(fault.part) {
                    Some(reason @ None) => *reason = Some(fault.reason),
                    _ => return Err(Failed::Sandbox(fault)),
                },
                Err(failed) => return Err(failed),
            }
        }
    }

    /// Where the reason is kept for a part that can be left out.
    fn refused(&mut self, part: Part) -> Option<&mut Option<String>> {
        match part {
            Part::Files => None,
            Part::Terminals => Some(&mut self.no_terminals),
            Part::Processes => Some(&mut self.no_namespace),
            Part::Signals => Some(&mut self.no_scope),
            Part::Descriptors => Some(&mut self.no_filter),
        }
    }

    /// Adds the parts to a plan that hides files. The handle is the keeper's hold on the PID namespace.
    pub(crate) fn add_to(&self, mut plan: Plan) -> io::Result<(Plan, Option<Handle>)> {
        if self.no_terminals.is_none() {
            plan.terminals =
                paths::terminals()?.iter().map(|place| c_path(place)).collect::<io::Result<_>>()?;
        }
        if self.no_filter.is_none() && Descriptors::needed(self.tracing) == Descriptors::Filter {
            plan.filter = Filter::against_tracing();
        }
        if self.no_namespace.is_some() {
            plan.signals = if self.no_scope.is_some() { Signals::Free } else { Signals::Scoped };
            return Ok((plan, None));
        }
        let (leash, handle) = Leash::new()?;
        plan.leash = Some(leash);
        Ok((plan, Some(handle)))
    }

    fn walled(&self) -> Walled {
        let signals = match (&self.no_namespace, &self.no_scope) {
            (None, _) => Protection::Held("a PID namespace".to_owned()),
            (Some(reason), None) => Protection::Held(format!("Landlock, as {reason}")),
            (Some(reason), Some(other)) => Protection::Open(format!("{reason}; {other}")),
        };
        let descriptors = match (Descriptors::needed(self.tracing), &self.no_filter) {
            (Descriptors::Nothing, _) => tracing_is_allowed(),
            (Descriptors::System(by), _) => Protection::Held(by),
            (Descriptors::Filter, Some(reason)) => Protection::Open(reason.clone()),
            (Descriptors::Filter, None) if Filter::against_tracing().is_none() => {
                Protection::Open("there is no system call filter for this processor".to_owned())
            }
            (Descriptors::Filter, None) => Protection::Held("a system call filter".to_owned()),
        };
        Walled::Namespaces { signals, descriptors, memory: memory(self.tracing) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusing<'a>(refused: &'a [(Part, &'a str)]) -> impl FnMut(&Enclosure) -> Result<(), Failed> + 'a {
        let mut refused = refused.iter();
        move |_| match refused.next() {
            Some((part, reason)) => Err(Failed::Sandbox(Fault { part: *part, reason: (*reason).to_owned() })),
            None => Ok(()),
        }
    }

    fn signals_after(refused: &[(Part, &str)]) -> Protection {
        match Enclosure::all(Tracing::Denied).attempt(refusing(refused)).unwrap().1 {
            Walled::Namespaces { signals, .. } => signals,
            walled @ Walled::None { .. } => panic!("{walled:?}"),
        }
    }

    #[test]
    fn a_refused_part_is_left_out_and_named() {
        assert_eq!(signals_after(&[]), Protection::Held("a PID namespace".to_owned()));
        let masked = (Part::Processes, "it is masked");
        assert_eq!(signals_after(&[masked]), Protection::Held("Landlock, as it is masked".to_owned()));
        let old = (Part::Signals, "too old");
        assert_eq!(signals_after(&[masked, old]), Protection::Open("it is masked; too old".to_owned()));
    }

    #[test]
    fn what_is_refused_again_or_hides_the_files_ends_the_attempt() {
        let masked = (Part::Processes, "it is masked");
        for refused in [&[masked, masked][..], &[(Part::Files, "no")]] {
            assert!(Enclosure::all(Tracing::Denied).attempt(refusing(refused)).is_err());
        }
    }
}
