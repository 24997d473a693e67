//! Commands: calls of methods that the hub of another host executes. This module sends them and waits for the replies; `hub/other_hubs.rs`
//! executes those that other hubs send.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plexus_protocol::{CommandId, Error, ErrorKind, HostName, Principal};
use plexus_store::{CommandState, Fleet, HostRow, HostState, NewCommand, Role, Sent, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::callers::access::Admitted;
use crate::callers::caller::{Caller, Door};
use crate::errors::store_error;
use crate::metrics::CommandFigures;

/// How long a command waits for its host.
const EXPIRES: Duration = Duration::from_secs(30);
/// How often the state of a command without a reply is examined.
const EXAMINE: Duration = Duration::from_secs(2);
/// How long a host may execute a command, beside the time that the caller gives the set-up of a worktree. No method takes so long, except on a host that
/// is stuck, or that an attacker controls.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1200);
/// For how long the reply to an executed command is remembered. A command is not executed so long after it was sent.
const REMEMBERED: Duration = Duration::from_secs(60);
/// How long the lease of a host must have been expired before a command that the host has taken fails.
const SILENT_MS: u64 = 30_000;

/// The caller of a command, as hubs send it to each other.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SentCaller {
    principal: Principal,
    door: Door,
}

impl From<SentCaller> for Caller {
    fn from(sent: SentCaller) -> Self {
        Self::of(sent.principal, sent.door)
    }
}

/// The commands that this hub has sent, and those that it executes.
pub(crate) struct Commands {
    fleet: Arc<dyn Fleet>,
    waiting: Mutex<HashMap<CommandId, oneshot::Sender<Value>>>,
    /// The commands without a reply whose callers are gone. Their hosts need not execute them any more.
    abandoned: Mutex<Vec<CommandId>>,
    /// The commands of other hubs that this hub executes.
    executing: Mutex<HashSet<CommandId>>,
    /// The replies to those that it has executed, for some time.
    executed: Mutex<HashMap<CommandId, (Instant, Value)>>,
    figures: CommandFigures,
}

impl Commands {
    pub(crate) fn new(fleet: Arc<dyn Fleet>, figures: CommandFigures) -> Self {
        Self {
            fleet,
            waiting: Mutex::default(),
            abandoned: Mutex::default(),
            executing: Mutex::default(),
            executed: Mutex::default(),
            figures,
        }
    }

    /// The commands that were sent and executed.
    pub(crate) fn figures(&self) -> &CommandFigures {
        &self.figures
    }

    /// The commands of other hubs that this hub executes.
    pub(crate) fn executing(&self) -> Vec<CommandId> {
        self.executing_lock().iter().copied().collect()
    }

    /// Marks a command as executing; returns `false` if it already is.
    pub(crate) fn try_start(&self, command: CommandId) -> bool {
        self.executing_lock().insert(command)
    }

    /// Stores the reply and stops executing the command.
    pub(crate) fn finish(&self, command: CommandId, reply: Value) {
        let mut executed = self.executed_lock();
        executed.retain(|_, (at, _)| at.elapsed() < REMEMBERED);
        executed.insert(command, (Instant::now(), reply));
        self.executing_lock().remove(&command);
    }

    /// The reply to a command that this hub has executed. A database that has lost the reply offers the command again.
    pub(crate) fn reply_of(&self, command: CommandId) -> Option<Value> {
        self.executed_lock().get(&command).map(|(_, reply)| reply.clone())
    }

    pub(crate) fn fleet(&self) -> &Arc<dyn Fleet> {
        &self.fleet
    }

    /// Calls a method on the hub of another host, which checks the access of the caller again.
    pub(crate) async fn call(
        &self,
        host: &HostName,
        caller: &Admitted,
        method: &str,
        params: Value,
    ) -> Result<Value, Error> {
        let result = self.send_and_wait(host, caller, method, params).await;
        self.figures.sent(host, &result);
        result
    }

    async fn send_and_wait(
        &self,
        host: &HostName,
        caller: &Admitted,
        method: &str,
        params: Value,
    ) -> Result<Value, Error> {
        if self.fleet.roles().role() == Role::Runner {
            let message = format!(
                "the role of host `{}` is limited to its own sessions: use a hub whose role owns the tables of the database",
                self.fleet.host()
            );
            return Err(Error::new(ErrorKind::Forbidden, message).with("host", host.as_str()));
        }
        let caller = SentCaller { principal: caller.principal.clone(), door: caller.door };
        let id = CommandId::random();
        let command = NewCommand {
            id,
            host: host.clone(),
            caller: json!(caller),
            method: method.to_owned(),
            params,
            expires_ms: EXPIRES.as_millis() as u64,
        };
        let (reply, mut answer) = oneshot::channel();
        self.waiting().insert(id, reply);
        // Removes the entry when this function ends, even if the caller disconnects.
        let _waiting = Forget { commands: self, id };
        let uncertain =
            |error: StoreError| unreachable(host, &format!("the request may have been executed ({error})"));
        if self.fleet.send(&command).await.map_err(uncertain)? == Sent::NotConnected {
            return Err(self.why_not_connected(host).await?);
        }
        let (mut waited, mut failed) = (Duration::ZERO, Duration::ZERO);
        loop {
            if let Ok(reply) = timeout(EXAMINE, &mut answer).await {
                return read_reply(reply.unwrap_or(Value::Null));
            }
            waited += EXAMINE;
            // The reply may have come without a wake-up.
            let examined = async {
                self.read_replies().await?;
                self.progress(&command, waited).await
            };
            match examined.await {
                Ok(Progress::Waits) => failed = Duration::ZERO,
                Ok(Progress::Fails(error)) => match answer.try_recv() {
                    Ok(reply) => return read_reply(reply),
                    Err(_) => return Err(error),
                },
                // The database is unreachable; the command may be executed in the meantime.
                Err(error) if failed >= EXPIRES => return Err(uncertain(error)),
                Err(_) => failed += EXAMINE,
            }
        }
    }

    /// Why a command was not sent to a host: a caller should not have to wait for it.
    async fn why_not_connected(&self, host: &HostName) -> Result<Error, Error> {
        let hosts = self.fleet.hosts().await.map_err(store_error)?;
        Ok(not_connected(host, &hosts))
    }

    /// Whether a command can still have a reply.
    async fn progress(&self, command: &NewCommand, waited: Duration) -> Result<Progress, StoreError> {
        let NewCommand { id, host, params, .. } = command;
        let fails = |why: &str| Ok(Progress::Fails(unreachable(host, why)));
        match self.fleet.command_states(&[*id]).await?.first() {
            None => fails("the database has lost the request, which may have been executed"),
            Some((_, CommandState::Replied(_))) => Ok(Progress::Waits),
            Some((_, CommandState::Taken)) => match self.silence_of(host).await? {
                Some(silent) if silent > SILENT_MS => fails(
                    "it has received the request and then disconnected, so the request may have been executed",
                ),
                _ if waited >= answered_within(params) => fails(&format!(
                    "it received the request {} minutes ago and has not replied, so the request may have been executed",
                    waited.as_secs() / 60
                )),
                _ => Ok(Progress::Waits),
            },
            Some((_, CommandState::Sent)) => {
                let is_late = waited >= EXPIRES || self.silence_of(host).await?.is_some();
                if is_late && self.fleet.withdraw(*id).await? {
                    let why = "the request was not executed; try again when the host is connected";
                    return Ok(Progress::Fails(not_executed(host, why)));
                }
                Ok(Progress::Waits)
            }
        }
    }

    /// For how many milliseconds the hub of a host has been disconnected.
    async fn silence_of(&self, host: &HostName) -> Result<Option<u64>, StoreError> {
        let hosts = self.fleet.hosts().await?;
        Ok(hosts.into_iter().find(|row| row.name == *host).and_then(|row| row.silent_ms))
    }

    /// Hands the replies that have arrived to the callers that wait for them.
    pub(crate) async fn read_replies(&self) -> Result<(), StoreError> {
        let ids: Vec<CommandId> = self.waiting().keys().copied().collect();
        if ids.is_empty() {
            return Ok(());
        }
        for (id, state) in self.fleet.command_states(&ids).await? {
            if let CommandState::Replied(reply) = state
                && let Some(waiting) = self.waiting().remove(&id)
            {
                // The caller may be gone.
                let _ = waiting.send(reply);
            }
        }
        Ok(())
    }

    /// Withdraws the commands whose callers are gone, unless their hosts have taken them.
    pub(crate) async fn withdraw_abandoned(&self) -> Result<(), StoreError> {
        let abandoned = std::mem::take(&mut *self.abandoned());
        let mut withdrawn = Ok(());
        for id in abandoned {
            if let Err(error) = self.fleet.withdraw(id).await {
                self.abandoned().push(id);
                withdrawn = Err(error);
            }
        }
        withdrawn
    }

    fn executing_lock(&self) -> MutexGuard<'_, HashSet<CommandId>> {
        self.executing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn executed_lock(&self) -> MutexGuard<'_, HashMap<CommandId, (Instant, Value)>> {
        self.executed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn abandoned(&self) -> MutexGuard<'_, Vec<CommandId>> {
        self.abandoned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<CommandId, oneshot::Sender<Value>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a host may execute a command with these parameters.
fn answered_within(params: &Value) -> Duration {
    let set_up = params["isolation"]["setup_timeout_secs"].as_u64().unwrap_or_default();
    ANSWERED_WITHIN.saturating_add(Duration::from_secs(set_up))
}

/// Whether a command can still have a reply.
enum Progress {
    Waits,
    Fails(Error),
}

struct Forget<'a> {
    commands: &'a Commands,
    id: CommandId,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        let had_reply = self.commands.waiting().remove(&self.id).is_none();
        if !had_reply {
            self.commands.abandoned().push(self.id);
        }
    }
}

/// The result of a method, as hubs send it to each other.
pub(crate) fn write_reply(result: Result<Value, Error>) -> Value {
    match result {
        Ok(value) => json!({ "ok": value }),
        Err(error) => json!({ "error": error.to_object() }),
    }
}

fn read_reply(reply: Value) -> Result<Value, Error> {
    let Value::Object(mut reply) = reply else { return Err(unreadable_reply()) };
    match (reply.remove("ok"), reply.remove("error")) {
        (Some(value), None) => Ok(value),
        (None, Some(Value::Object(error))) => Err(Error::from_object(error).unwrap_or_else(unreadable_reply)),
        _ => Err(unreadable_reply()),
    }
}

fn unreadable_reply() -> Error {
    Error::new(
        ErrorKind::Internal,
        "another hub sent a reply that cannot be read; do both run the same version?",
    )
}

/// The error for a command that was not sent, because the hub of its host is not connected.
fn not_connected(host: &HostName, hosts: &[HostRow]) -> Error {
    let Some(row) = hosts.iter().find(|row| row.name == *host) else {
        let others = hosts.iter().filter(|row| row.state != HostState::Removed);
        let names: Vec<&str> = others.map(|row| row.name.as_str()).collect();
        return Error::invalid(
            "host",
            format!("there is no host `{host}`; the hosts are {}", names.join(", ")),
        );
    };
    let why = match (row.state, row.silent_ms) {
        (HostState::Lost, _) => "it was declared lost; nothing was executed".to_owned(),
        // Not an invalid host: this hub can still execute calls for what is left of it, such as a resolved approval.
        (HostState::Removed, _) => "it was removed; nothing was executed".to_owned(),
        (_, Some(silent)) => {
            format!("its hub has been disconnected for {} s; nothing was executed", silent / 1000)
        }
        (_, None) => "its hub was disconnected; nothing was executed. Try again".to_owned(),
    };
    not_executed(host, &why)
}

/// The error for a command that was certainly not executed: another host can be asked.
fn not_executed(host: &HostName, why: &str) -> Error {
    unreachable(host, why).with("executed", false)
}

fn unreachable(host: &HostName, why: &str) -> Error {
    Error::new(ErrorKind::HostUnreachable, format!("host `{host}` does not answer: {why}"))
        .with("host", host.as_str())
}

#[cfg(test)]
mod tests {
    use plexus_store::Capacity;

    use super::*;

    fn name(text: &str) -> HostName {
        HostName::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn a_removed_host_is_neither_listed_nor_called_lost() {
        let row = |host: &str, state| HostRow {
            name: name(host),
            epoch: 1,
            state,
            version: String::new(),
            silent_ms: Some(12_500),
            capacity: Capacity::default(),
        };
        let hosts =
            [row("one", HostState::Active), row("two", HostState::Lost), row("three", HostState::Removed)];
        let error = |host: &str| not_connected(&name(host), &hosts);
        let message = |host: &str| error(host).message;
        assert_eq!(message("four"), "`host`: there is no host `four`; the hosts are one, two");
        assert!(message("one").contains("its hub has been disconnected for 12 s"), "{}", message("one"));
        assert!(message("two").contains("it was declared lost"), "{}", message("two"));
        assert!(message("three").contains("it was removed"), "{}", message("three"));
        assert_eq!(error("three").kind, ErrorKind::HostUnreachable, "this hub executes what it can");
    }

    #[test]
    fn a_host_may_take_as_long_as_the_set_up_of_a_worktree() {
        let minutes = |params: Value| answered_within(&params).as_secs() / 60;
        assert_eq!(minutes(json!({"name": "worker"})), 20);
        assert_eq!(minutes(json!({"isolation": {"type": "worktree", "setup_timeout_secs": 3600}})), 80);
        assert_eq!(minutes(json!({"isolation": "worktree"})), 20);
    }

    #[test]
    fn a_result_is_read_as_it_was_written() {
        for result in [
            Ok(json!({"type": "ok", "n": [1, null]})),
            Ok(Value::Null),
            Err(Error::new(ErrorKind::SessionNotFound, "session `a` does not exist").with("name", "a")),
        ] {
            assert_eq!(read_reply(write_reply(result.clone())), result);
        }
    }

    #[test]
    fn a_reply_that_cannot_be_read_is_an_error() {
        for reply in
            [json!(null), json!({}), json!({"ok": 1, "error": {}}), json!({"error": {"type": "new_kind"}})]
        {
            assert_eq!(
                read_reply(reply.clone()).map_err(|error| error.kind),
                Err(ErrorKind::Internal),
                "{reply}"
            );
        }
    }
}
