//! How much of a sandbox is created: all of it where the system grants that, else without the part that was refused. Only the
//! part that hides the hub's files cannot be left out here; what then becomes of the child is the caller's to decide.

use std::io;

use super::filter::Filter;
use super::processes::{Handle, Leash};
use super::protection::{Descriptors, Protection, Tracing, memory, tracing_is_allowed};
use super::{Plan, Walled};

/// A part of a sandbox that a system may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Files,
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
    no_namespace: Option<String>,
    no_filter: Option<String>,
}

impl Enclosure {
    /// Everything that the setting asks for.
    pub(crate) fn all(tracing: Tracing) -> Self {
        Self { tracing, no_namespace: None, no_filter: None }
    }

    /// Has `start` start a process with as much as the system grants, and reports what that is.
    pub(crate) fn attempt<T>(
        mut self,
        mut start: impl FnMut(&Self) -> Result<T, Failed>,
    ) -> Result<(T, Walled), Failed> {
        loop {
            match start(&self) {
                Ok(started) => return Ok((started, self.walled())),
                Err(Failed::Sandbox(fault)) if fault.part == Part::Signals && self.no_namespace.is_none() => {
                    self.no_namespace = Some(fault.reason);
                }
                Err(Failed::Sandbox(fault))
                    if fault.part == Part::Descriptors && self.no_filter.is_none() =>
                {
                    self.no_filter = Some(fault.reason);
                }
                Err(failed) => return Err(failed),
            }
        }
    }

    /// Adds the parts to a plan that hides files. The handle is the keeper's hold on the PID namespace.
    pub(crate) fn add_to(&self, mut plan: Plan) -> io::Result<(Plan, Option<Handle>)> {
        if self.no_filter.is_none() && Descriptors::needed(self.tracing) == Descriptors::Filter {
            plan.filter = Filter::against_tracing();
        }
        if self.no_namespace.is_some() {
            return Ok((plan, None));
        }
        let (leash, handle) = Leash::new()?;
        plan.leash = Some(leash);
        Ok((plan, Some(handle)))
    }

    fn walled(&self) -> Walled {
        let signals = match &self.no_namespace {
            None => Protection::Held("a PID namespace".to_owned()),
            Some(reason) => Protection::Open(reason.clone()),
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

    #[test]
    fn a_refused_part_is_left_out_and_named() {
        let mut attempts = 0;
        let refused = |part, reason: &str| Err(Failed::Sandbox(Fault { part, reason: reason.to_owned() }));
        let (_, walled) = Enclosure::all(Tracing::Denied)
            .attempt(|enclosure| {
                attempts += 1;
                if enclosure.no_namespace.is_none() { refused(Part::Signals, "masked") } else { Ok(()) }
            })
            .unwrap();
        let Walled::Namespaces { signals, .. } = walled else { panic!("{walled:?}") };
        assert_eq!((attempts, signals), (2, Protection::Open("masked".to_owned())));

        let failed =
            Enclosure::all(Tracing::Denied).attempt(|_| refused(Part::Signals, "always") as Result<(), _>);
        assert!(failed.is_err(), "it is not attempted for ever");
        let failed = Enclosure::all(Tracing::Denied).attempt(|_| refused(Part::Files, "no") as Result<(), _>);
        assert!(failed.is_err(), "the hub's files are never left open here");
    }
}
