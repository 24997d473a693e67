//! Placement: chooses the host of a session that is created with labels. The choice uses what this hub knows of the others, which may be out of date.
//! The hub of the chosen host decides in the transaction that creates the session; if it refuses for want of a slot, the next host is tried.

use std::cmp::Reverse;
use std::sync::Arc;

use plexus_protocol::{Error, ErrorKind, HostLabel, HostName};
use plexus_store::{HostRow, HostState, Role, SessionWithState};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Hub, Method};
use crate::callers::access::Admitted;
use crate::errors::store_error;
use crate::method::{Place, Subject};

/// The parameters that say where a session is created.
#[derive(Deserialize)]
struct Wanted {
    host: Option<HostName>,
    labels: Option<Vec<HostLabel>>,
}

/// A host, and how many of its slots are in use.
struct Candidate {
    row: HostRow,
    used: u64,
}

/// Why a host does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Unfit {
    Lost,
    Unreachable {
        secs: u64,
    },
    Draining,
    Lacks(Vec<HostLabel>),
    Full {
        slots: u64,
    },
    /// Its hub has refused.
    Refused(String),
}

impl Unfit {
    fn describe(&self) -> String {
        match self {
            Self::Lost => "was declared lost".to_owned(),
            Self::Unreachable { secs } => format!("has been unreachable for {secs} s"),
            Self::Draining => "is draining".to_owned(),
            Self::Lacks(labels) => {
                let labels: Vec<&str> = labels.iter().map(HostLabel::as_str).collect();
                format!("lacks {}", labels.join(", "))
            }
            Self::Full { slots: 0 } => "runs no agents (it has 0 slots)".to_owned(),
            Self::Full { slots } => format!("has no free slot ({slots} of {slots} are in use)"),
            Self::Refused(why) => format!("has refused: {why}"),
        }
    }
}

impl Candidate {
    fn fits(&self, labels: &[HostLabel]) -> Result<(), Unfit> {
        let HostRow { state, silent_ms, capacity, .. } = &self.row;
        let missing: Vec<HostLabel> =
            labels.iter().filter(|label| !capacity.labels.contains(label)).cloned().collect();
        match (state, silent_ms, capacity.slots) {
            _ if !missing.is_empty() => Err(Unfit::Lacks(missing)),
            (state, ..) if state.is_fenced() => Err(Unfit::Lost),
            (_, Some(silent), _) => Err(Unfit::Unreachable { secs: silent / 1000 }),
            (HostState::Draining, ..) => Err(Unfit::Draining),
            (_, _, Some(slots)) if self.used >= slots => Err(Unfit::Full { slots }),
            _ => Ok(()),
        }
    }

    /// A host without a limit has the most free slots; among equals, the one with the fewest in use comes first.
    fn order(&self) -> (Reverse<u64>, u64, HostName) {
        let free = self.row.capacity.slots.map_or(u64::MAX, |slots| slots.saturating_sub(self.used));
        (Reverse(free), self.used, self.row.name.clone())
    }
}

impl Hub {
    /// Forwards a call with `labels` to the hub of a host that fits; `None` if the call names no labels, or no other hub shares the store.
    pub(super) async fn call_where_it_fits(
        self: &Arc<Self>,
        method: &Method,
        caller: &Admitted,
        params: &Value,
    ) -> Option<Result<Value, Error>> {
        let fleet = self.fleet()?;
        if !matches!(method.place, Place::HostOf(Subject::Host, _)) {
            return None;
        }
        // The method itself reports parameters that cannot be read.
        let Wanted { host, labels } = Wanted::deserialize(params).ok()?;
        let labels = labels?;
        let known = async {
            let rows = fleet.hosts().await.map_err(store_error)?;
            let sessions = self.store().sessions_with_state().await.map_err(store_error)?;
            Ok(candidates(rows, &sessions))
        };
        let mut hosts: Vec<Candidate> = match known.await {
            Ok(hosts) => hosts,
            Err(error) => return Some(Err(error)),
        };
        if fleet.roles().role() == Role::Runner {
            // A runner sends no commands.
            hosts.retain(|candidate| self.is_own(Some(&candidate.row.name)));
        }
        if let Some(host) = host {
            hosts.retain(|candidate| candidate.row.name == host);
            // The call itself reports a host that does not exist.
            if hosts.is_empty() {
                return None;
            }
        }
        Some(self.try_each(method, caller, params, &labels, hosts).await)
    }

    async fn try_each(
        self: &Arc<Self>,
        method: &Method,
        caller: &Admitted,
        params: &Value,
        labels: &[HostLabel],
        hosts: Vec<Candidate>,
    ) -> Result<Value, Error> {
        let mut unfit = Vec::new();
        for candidate in hosts {
            let refusal = match candidate.fits(labels) {
                Ok(()) => match self.call_at(&candidate.row.name, method, caller, params.clone()).await {
                    Err(error) if should_try_next_host(&error) => Unfit::Refused(error.message),
                    reply => return reply,
                },
                Err(refusal) => refusal,
            };
            unfit.push((candidate.row.name, refusal));
        }
        Err(none_fits(labels, unfit))
    }

    /// Calls a method on the hub of this host, which may be this one.
    async fn call_at(
        self: &Arc<Self>,
        host: &HostName,
        method: &Method,
        caller: &Admitted,
        mut params: Value,
    ) -> Result<Value, Error> {
        if let Some(params) = params.as_object_mut() {
            params.insert("host".to_owned(), json!(host));
            // Chosen here: hosts change their labels only when their hubs start.
            params.remove("labels");
        }
        match self.is_own(Some(host)) {
            true => self.registry.call(Arc::clone(self), caller.clone(), method.name, params).await,
            false => self.call_on(host, caller, method.name, params).await,
        }
    }
}

/// The hosts in the order in which they are tried.
fn candidates(rows: Vec<HostRow>, sessions: &[SessionWithState]) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = rows
        .into_iter()
        .filter(|row| row.state != HostState::Removed)
        .map(|row| {
            let is_on_host = |session: &&SessionWithState| session.row.host.as_ref() == Some(&row.name);
            let used =
                sessions.iter().filter(is_on_host).filter(|session| session.takes_slot()).count() as u64;
            Candidate { row, used }
        })
        .collect();
    candidates.sort_by_key(Candidate::order);
    candidates
}

/// Whether to try the next host: this one did not create the session, for a reason that may not apply to others.
fn should_try_next_host(error: &Error) -> bool {
    let detail = |name: &str| error.details.get(name);
    match error.kind {
        ErrorKind::LimitReached => detail("limit") == Some(&json!("slots")),
        ErrorKind::InvalidParams => detail("field") == Some(&json!("host")),
        ErrorKind::HostUnreachable => detail("executed") == Some(&json!(false)),
        _ => false,
    }
}

/// The error if no host fits: it says why for each. If only a slot is missing, a later attempt may succeed.
fn none_fits(labels: &[HostLabel], unfit: Vec<(HostName, Unfit)>) -> Error {
    let could_fit_later =
        unfit.iter().any(|(_, why)| matches!(why, Unfit::Full { slots: 1.. } | Unfit::Refused(_)));
    let each: Vec<String> = unfit.iter().map(|(host, why)| format!("`{host}` {}", why.describe())).collect();
    let labels: Vec<&str> = labels.iter().map(HostLabel::as_str).collect();
    let wanted = if labels.is_empty() {
        "can take the session".to_owned()
    } else {
        format!("fits {}", labels.join(", "))
    };
    let message = format!("no host {wanted}: {}", each.join("; "));
    match could_fit_later {
        true => Error::new(ErrorKind::LimitReached, message).with("limit", "slots"),
        false => Error::invalid("labels", message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_store::Capacity;

    fn label(text: &str) -> HostLabel {
        HostLabel::try_from(text.to_owned()).unwrap()
    }

    fn candidate(name: &str, labels: &[&str], slots: Option<u64>, used: u64) -> Candidate {
        let row = HostRow {
            name: HostName::try_from(name.to_owned()).unwrap(),
            epoch: 1,
            state: HostState::Active,
            version: String::new(),
            silent_ms: None,
            capacity: Capacity { labels: labels.iter().map(|text| label(text)).collect(), slots },
        };
        Candidate { row, used }
    }

    #[test]
    fn the_host_with_the_most_free_slots_is_tried_first() {
        let mut hosts = [
            candidate("full", &[], Some(2), 2),
            candidate("busy", &[], None, 3),
            candidate("some", &[], Some(9), 4),
            candidate("idle", &[], None, 0),
            candidate("more", &[], Some(9), 1),
        ];
        hosts.sort_by_key(Candidate::order);
        let order: Vec<&str> = hosts.iter().map(|host| host.row.name.as_str()).collect();
        assert_eq!(order, ["idle", "busy", "more", "some", "full"]);
    }

    #[test]
    fn a_host_fits_only_with_all_labels_a_free_slot_and_a_connected_hub() {
        let wanted = [label("gpu"), label("team=a")];
        let fits = |host: &Candidate| host.fits(&wanted).map_err(|why| why.describe());
        let good = || candidate("one", &["gpu", "linux", "team=a"], Some(2), 1);
        assert_eq!(fits(&good()), Ok(()));
        let with = |change: &dyn Fn(&mut Candidate)| {
            let mut host = good();
            change(&mut host);
            fits(&host).unwrap_err()
        };
        assert_eq!(with(&|host| host.used = 2), "has no free slot (2 of 2 are in use)");
        assert_eq!(with(&|host| host.row.silent_ms = Some(12_500)), "has been unreachable for 12 s");
        assert_eq!(with(&|host| host.row.state = HostState::Draining), "is draining");
        assert_eq!(with(&|host| host.row.state = HostState::Lost), "was declared lost");
        assert_eq!(fits(&candidate("two", &["gpu"], None, 0)), Err("lacks team=a".to_owned()));
    }

    #[test]
    fn an_error_says_why_each_host_does_not_fit() {
        let name = |text: &str| HostName::try_from(text.to_owned()).unwrap();
        let lacks = (name("one"), Unfit::Lacks(vec![label("gpu")]));
        let error = none_fits(&[label("gpu")], vec![lacks.clone(), (name("two"), Unfit::Draining)]);
        assert_eq!(error.kind, ErrorKind::InvalidParams);
        assert!(error.message.contains("no host fits gpu: `one` lacks gpu; `two` is draining"), "{error}");
        let full = |slots| (name("two"), Unfit::Full { slots });
        let error = none_fits(&[label("gpu")], vec![lacks.clone(), full(1)]);
        assert_eq!(error.kind, ErrorKind::LimitReached, "{error}");
        let error = none_fits(&[label("gpu")], vec![lacks, full(0)]);
        assert_eq!(error.kind, ErrorKind::InvalidParams, "a host without slots never has one: {error}");
        assert!(error.message.contains("`two` runs no agents"), "{error}");
    }
}
