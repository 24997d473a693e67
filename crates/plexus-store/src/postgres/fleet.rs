//! The hubs that share a PostgreSQL database. One connection, apart from those of the store, carries wake-ups, leases and commands. It never waits
//! for a transaction that writes.
//!
//! Its transactions are synchronous: a command that was taken or answered must not be executed again after a crash of the server.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use plexus_protocol::{CommandId, HostName};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_postgres::{AsyncMessage, Client, Error, Row};

use super::announcements::{Announcements, INTERVAL};
use super::connector::{Connector, PgTask};
use super::errors::describe;
use super::fleet_rows::{
    command_id, command_row, command_state, host_row, host_state, json, number, optional_number, text,
};
use super::membership::Membership;
use super::prepared_client::PreparedClient;
use crate::fleet::{
    Changed, CommandRow, CommandState, Fenced, Fleet, HostRow, NewCommand, News, RemoteCommits, Sent, Wake,
};
use crate::{HostRoles, Role, StoreError};

/// How often the lease is renewed.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// For how long a lease is valid.
const LEASE_MS: i64 = 10_000;
/// How long the server may take to answer before the connection counts as lost.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The time between two attempts to connect.
const RETRY: Duration = Duration::from_millis(500);
/// How often a hub reads although nobody wakes it.
const POLL: Duration = Duration::from_secs(1);
/// How many transactions are read at once.
const PAGE: i64 = 1000;
/// For how long records of transactions and finished commands are kept.
const KEPT_MS: i64 = 600_000;
/// How often old records are deleted.
const CLEAN_EVERY: Duration = Duration::from_secs(60);
/// For how long the presence of a caller is kept: longer than any caller counts as present.
const PRESENCE_KEPT_MS: i64 = 24 * 3600 * 1000;

const FLEET_SETUP: &str = "SET search_path = plexus; SET synchronous_commit = on; SET lock_timeout = '4s'; SET statement_timeout = '4s'; \
    SET enable_seqscan = off; SET jit = off; LISTEN plexus";
const CHANNEL: &str = "plexus";
/// The content of a message to all hubs that is urgent.
const URGENT: &str = "";
/// With this begins the content of an announcement to all hubs, before the number of a transaction. Other messages contain the name of a host, which has
/// no `*`.
const ANNOUNCED: &str = "*";

// A message need not survive a crash of the server, so no hub waits for a disk.
const WAKE: &str = "SELECT set_config('synchronous_commit', 'off', TRUE), pg_notify($1, $2)";
const ANNOUNCE: &str =
    "SELECT set_config('synchronous_commit', 'off', TRUE), pg_notify($1, $2::TEXT || number) FROM writer";
const RENEW: &str = "INSERT INTO leases (host, until) \
    SELECT name, (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT + $3 FROM hosts WHERE name = $1 AND epoch = $2 \
    ON CONFLICT (host) DO UPDATE SET until = excluded.until";
const OWN_STATE: &str = "SELECT epoch, state FROM hosts WHERE name = $1";
// A command that runs is kept until it has a reply.
const CLEAN: &str = "WITH now AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT AS ms), \
    old AS (DELETE FROM commands WHERE expires_at < (SELECT ms FROM now) - $1 \
        AND (reply IS NOT NULL OR taken_in IS NULL OR expires_at < (SELECT ms FROM now) - $2)), \
    absent AS (DELETE FROM presence WHERE seen_at < (SELECT ms FROM now) - $2 OR seen_at > (SELECT ms FROM now) + 60000) \
    DELETE FROM commits WHERE at < (SELECT ms FROM now) - $1";
const HOSTS: &str = "SELECT h.name, h.epoch, h.state, h.version, h.labels, h.slots, \
    (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT - coalesce(l.until, h.joined_at) AS silent_ms \
    FROM hosts h LEFT JOIN leases l ON l.host = h.name ORDER BY h.name";
const TIME: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT AS ms";
const LAST_COMMIT: &str = "SELECT number FROM writer";
// A larger record is not read, because many of them would not fit into memory: then everything is read again.
const COMMITS: &str = "SELECT w.number AS head, c.number, c.host, c.changed FROM writer w \
    LEFT JOIN LATERAL (SELECT number, host, CASE WHEN octet_length(changed) <= 65536 THEN changed END AS changed FROM commits \
        WHERE number > $1 ORDER BY number LIMIT $2) c ON TRUE ORDER BY c.number";
// Only to a host whose lease is valid. The message wakes its hub.
const SEND: &str = "WITH sent AS (INSERT INTO commands (id, origin, host, caller, method, params, sent_at, expires_at) \
        SELECT $1, $2, h.name, $4, $5, $6, now.ms, now.ms + $7 FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT AS ms) now \
        JOIN hosts h ON h.name = $3 AND h.state NOT IN ('lost', 'removed') JOIN leases l ON l.host = h.name AND l.until >= now.ms RETURNING host) \
    SELECT pg_notify($8, host) FROM sent";
// A hub of an earlier epoch takes nothing.
const TAKE: &str = "WITH open AS (SELECT id, coalesce(taken_in <> $2, FALSE) AS taken_before FROM commands \
        WHERE host = $1 AND reply IS NULL AND (taken_in IS DISTINCT FROM $2 OR NOT id = ANY ($3)) \
        AND EXISTS (SELECT 1 FROM hosts WHERE name = $1 AND epoch = $2 AND state NOT IN ('lost', 'removed')) ORDER BY number FOR UPDATE SKIP LOCKED) \
    UPDATE commands c SET taken_in = $2 FROM open WHERE c.id = open.id \
    RETURNING c.id, c.number, c.origin, c.caller, c.method, c.params, \
        c.expires_at < (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT AS expired, open.taken_before";
const NOTE_PRESENT: &str = "INSERT INTO presence (caller, seen_at) \
    SELECT unnest($1::TEXT[]), (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT \
    ON CONFLICT (caller) DO UPDATE SET seen_at = excluded.seen_at";
const PRESENT: &str = "SELECT caller, greatest(0, (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT - seen_at) AS ago_ms FROM presence \
    WHERE seen_at BETWEEN (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT - $1 AND (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT + 5000";
const REPLY: &str = "WITH replied AS (UPDATE commands SET reply = $2 WHERE id = $1 AND reply IS NULL RETURNING origin) \
    SELECT pg_notify($3, origin) FROM replied";
const STATES: &str = "SELECT id, taken_in IS NOT NULL AS taken, reply FROM commands WHERE id = ANY ($1)";
const WITHDRAW: &str = "DELETE FROM commands WHERE id = $1 AND origin = $2 AND taken_in IS NULL";

/// The fleet, as the hub of one host sees it.
pub(super) struct PgFleet {
    pub(super) connector: Connector,
    pub(super) role: Role,
    membership: Arc<Membership>,
    client: watch::Sender<Option<Arc<PreparedClient>>>,
    /// The process of the server behind the connection: its messages come back to this hub.
    process: AtomicI32,
    woken: Notify,
    /// Commits were announced.
    announced: Notify,
    announcements: Mutex<Announcements>,
    last_read: Mutex<Instant>,
    /// When commands were last looked for.
    last_any: Mutex<Instant>,
    /// Whether there may be a command for this host, or a reply.
    is_addressed: AtomicBool,
    /// The hubs that have to be woken.
    to_wake: Mutex<BTreeSet<Wake>>,
    has_to_wake: Notify,
}

impl PgFleet {
    pub(super) fn new(connector: Connector, membership: Arc<Membership>, role: Role) -> Self {
        let announcements = Announcements::of(&membership.host);
        Self {
            connector,
            role,
            membership,
            client: watch::Sender::new(None),
            process: AtomicI32::new(0),
            woken: Notify::new(),
            announced: Notify::new(),
            announcements: Mutex::new(announcements),
            last_read: Mutex::new(Instant::now()),
            last_any: Mutex::new(Instant::now()),
            is_addressed: AtomicBool::new(false),
            to_wake: Mutex::default(),
            has_to_wake: Notify::new(),
        }
    }

    fn name(&self) -> &str {
        self.membership.host.as_str()
    }

    fn announcements(&self) -> MutexGuard<'_, Announcements> {
        self.announcements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn epoch(&self) -> i64 {
        i64::try_from(self.membership.epoch).unwrap_or(i64::MAX)
    }

    async fn stay_connected(&self) -> Infallible {
        loop {
            match self.connect().await {
                Ok((client, connection)) => {
                    let messages = self.receive(connection);
                    tokio::select! {
                        () = messages => {}
                        Err(error) = self.offer(client) => tracing::warn!(%error, "cannot listen to other hubs"),
                    }
                    self.client.send_replace(None);
                }
                Err(error) => tracing::warn!(%error, "cannot connect to other hubs; trying again"),
            }
            sleep(RETRY).await;
        }
    }

    /// Prepares a connection and offers it to all requests. Returns when one of them had no answer.
    async fn offer(&self, client: Client) -> Result<Infallible, StoreError> {
        let setup = async {
            client.batch_execute(FLEET_SETUP).await?;
            client.query_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)
        };
        let process: i32 = timeout(ANSWER_TIMEOUT, setup)
            .await
            .map_err(|_| no_answer())?
            .map_err(|error| unavailable(&error))?;
        self.process.store(process, Ordering::Relaxed);
        self.announcements().forget();
        let mut offered = self.client.subscribe();
        self.client.send_replace(Some(Arc::new(PreparedClient::new(client))));
        // Whatever happened while nobody listened.
        self.news_for_this_host();
        // The sender is not dropped before this value.
        let _ = offered.wait_for(Option::is_none).await;
        Err(no_answer())
    }

    async fn connect(&self) -> Result<(Client, PgTask), StoreError> {
        let connected = timeout(ANSWER_TIMEOUT, self.connector.connect()).await.map_err(|_| no_answer())?;
        connected.map_err(|error| unavailable(&error))
    }

    /// Drives a connection until it ends.
    async fn receive(&self, mut connection: PgTask) {
        loop {
            match poll_fn(|context| connection.poll_message(context)).await {
                Some(Ok(AsyncMessage::Notification(message))) => {
                    let is_own = self.process.load(Ordering::Relaxed) == message.process_id();
                    match message.payload() {
                        URGENT if !is_own => self.woken.notify_one(),
                        host if host == self.name() => self.news_for_this_host(),
                        other => {
                            if let Some(number) = other.strip_prefix(ANNOUNCED) {
                                self.receive_announcement(number);
                            }
                        }
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    tracing::warn!(error = describe(&error), "the connection to other hubs ended");
                    return;
                }
                None => return,
            }
        }
    }

    /// Reads what was announced, by whichever hub: the message also stands for those that other hubs have not sent because of it.
    fn receive_announcement(&self, number: &str) {
        // Any role can send a message. One with too high a number must not stand for later commits.
        let upto = number.parse().unwrap_or_default();
        self.announcements().received(self.membership.seen().min(upto), Instant::now());
        self.announced.notify_one();
    }

    /// Whether other hubs know of all commits of this one.
    fn are_all_announced(&self) -> bool {
        self.membership.last_number().is_some_and(|last| self.announcements().include(last))
    }

    /// Renews the lease until this hub cannot write any more.
    async fn renew_lease(&self) -> Fenced {
        loop {
            let renewed = self
                .perform(async |client| {
                    // A role that was stopped can only read the state.
                    if let Err(error) = client.execute(RENEW, &[&self.name(), &self.epoch(), &LEASE_MS]).await
                    {
                        tracing::debug!(error = describe(&error), "the lease of this host was not renewed");
                    }
                    client.query_opt(OWN_STATE, &[&self.name()]).await
                })
                .await;
            match renewed.and_then(|row| self.fenced(row.as_ref())) {
                Ok(None) => {}
                Ok(Some(fenced)) => return fenced,
                Err(error) => tracing::debug!(%error, "the state of this host was not read"),
            }
            sleep(HEARTBEAT).await;
        }
    }

    /// Whether this hub can never write again, from the row of its host.
    fn fenced(&self, row: Option<&Row>) -> Result<Option<Fenced>, StoreError> {
        // A database without the host was restored from an old backup: this hub holds all changes.
        let Some(row) = row else { return Ok(None) };
        // A row with an earlier epoch also comes from an old backup; it does not mean that this hub was replaced.
        let is_replaced = number(row, "epoch")? > self.membership.epoch;
        Ok(match host_state(row)?.is_fenced() {
            true => Some(Fenced::Lost),
            false => is_replaced.then_some(Fenced::Replaced),
        })
    }

    async fn clean(&self) -> Infallible {
        loop {
            let old = [KEPT_MS, PRESENCE_KEPT_MS];
            let cleaned = async |client: &PreparedClient| client.execute(CLEAN, &[&old[0], &old[1]]).await;
            if let Err(error) = self.perform(cleaned).await {
                tracing::debug!(%error, "old records for other hubs were not deleted");
            }
            sleep(CLEAN_EVERY).await;
        }
    }

    /// There may be a command for this host, or a reply.
    fn news_for_this_host(&self) {
        self.is_addressed.store(true, Ordering::Relaxed);
        self.woken.notify_one();
    }

    async fn wake_others(&self) -> Infallible {
        // When commits are announced for which nothing is urgent.
        let mut announce_at = None;
        loop {
            match announce_at {
                None => self.has_to_wake.notified().await,
                // A timeout is not an error.
                Some(at) => drop(timeout_at(at, self.has_to_wake.notified()).await),
            }
            let mut payloads = BTreeSet::new();
            for whom in std::mem::take(&mut *self.to_wake.lock().unwrap_or_else(PoisonError::into_inner)) {
                match whom {
                    Wake::AllSoon => {
                        announce_at.get_or_insert_with(|| self.announcements().next(Instant::now()));
                    }
                    Wake::All => drop(payloads.insert(URGENT.to_owned())),
                    Wake::Host(host) => drop(payloads.insert(host.to_string())),
                }
            }
            if payloads.contains(URGENT) {
                announce_at = None;
            }
            for payload in &payloads {
                self.notify(WAKE, payload).await;
            }
            let is_due = announce_at.take_if(|at| *at <= Instant::now()).is_some();
            if is_due && !self.are_all_announced() {
                self.notify(ANNOUNCE, ANNOUNCED).await;
            }
        }
    }

    async fn notify(&self, message: &'static str, content: &str) {
        let sent = async |client: &PreparedClient| client.execute(message, &[&CHANNEL, &content]).await;
        if let Err(error) = self.perform(sent).await {
            // The other hubs read once a second anyway.
            tracing::debug!(%error, "other hubs were not woken");
        }
    }

    /// Performs a request on the connection.
    pub(super) async fn perform<T>(
        &self,
        request: impl AsyncFnOnce(&PreparedClient) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        let mut connected = self.client.subscribe();
        let client = match timeout(ANSWER_TIMEOUT, connected.wait_for(Option::is_some)).await {
            Ok(Ok(client)) => client.clone(),
            Ok(Err(_)) | Err(_) => None,
        };
        let client = client.ok_or_else(no_answer)?;
        match timeout(ANSWER_TIMEOUT, request(&client)).await {
            Ok(result) => result.map_err(|error| unavailable(&error)),
            Err(_) => {
                // Another request may have replaced this connection already.
                let is_this = |offered: &Option<Arc<PreparedClient>>| {
                    offered.as_ref().is_some_and(|it| Arc::ptr_eq(it, &client))
                };
                self.client.send_if_modified(|offered| {
                    let lost = is_this(offered);
                    if lost {
                        *offered = None;
                    }
                    lost
                });
                Err(no_answer())
            }
        }
    }
}

#[async_trait]
impl Fleet for PgFleet {
    fn host(&self) -> &HostName {
        &self.membership.host
    }

    fn roles(&self) -> &dyn HostRoles {
        self
    }

    async fn run(&self) -> Fenced {
        tokio::select! {
            fenced = self.renew_lease() => fenced,
            never = self.stay_connected() => match never {},
            never = self.wake_others() => match never {},
            never = self.clean() => match never {},
        }
    }

    async fn woken(&self) -> News {
        let last = *self.last_read.lock().unwrap_or_else(PoisonError::into_inner);
        let announced = async {
            self.announced.notified().await;
            sleep_until(last + INTERVAL).await;
        };
        let has_message = tokio::select! {
            () = self.woken.notified() => true,
            () = announced => true,
            () = sleep(POLL) => false,
        };
        *self.last_read.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let is_for_this_host = self.is_addressed.swap(false, Ordering::Relaxed);
        let mut last_any = self.last_any.lock().unwrap_or_else(PoisonError::into_inner);
        // Also in a busy fleet, commands are looked for once a second: the last attempt may have failed.
        if has_message && !is_for_this_host && last_any.elapsed() < POLL {
            return News::Commits;
        }
        *last_any = Instant::now();
        News::Any
    }

    fn wake(&self, whom: Wake) {
        self.to_wake.lock().unwrap_or_else(PoisonError::into_inner).insert(whom);
        self.has_to_wake.notify_one();
    }

    async fn hosts(&self) -> Result<Vec<HostRow>, StoreError> {
        let rows = self.perform(async |client| client.query(HOSTS, &[]).await).await?;
        rows.iter().map(host_row).collect()
    }

    fn has_lost_commits(&self) -> bool {
        self.membership.has_lost_commits()
    }

    fn accept_rollback(&self) -> Result<(), StoreError> {
        self.membership.accept_rollback()
    }

    async fn time_ms(&self) -> Result<u64, StoreError> {
        let row = self.perform(async |client| client.query_one(TIME, &[]).await).await?;
        number(&row, "ms")
    }

    async fn last_commit(&self) -> Result<u64, StoreError> {
        let row = self.perform(async |client| client.query_one(LAST_COMMIT, &[]).await).await?;
        number(&row, "number")
    }

    async fn commits_after(&self, after: u64) -> Result<RemoteCommits, StoreError> {
        let edge = i64::try_from(after).unwrap_or(i64::MAX);
        let seen = self.membership.seen();
        let rows = self.perform(async |client| client.query(COMMITS, &[&edge, &PAGE]).await).await?;
        let mut commits = RemoteCommits { last: after, ..RemoteCommits::default() };
        if let Some(row) = rows.first() {
            self.membership.saw(number(row, "head")?, seen);
        }
        for row in &rows {
            let head = number(row, "head")?;
            let Some(number) = optional_number(row, "number")? else {
                // All have been read, or have been deleted, or the database has lost some.
                commits.incomplete = head != after;
                commits.last = head;
                return Ok(commits);
            };
            commits.incomplete |= number != commits.last + 1;
            commits.last = number;
            commits.has_more = number < head;
            if text(row, "host")? != self.name() {
                // A record that is too large or cannot be read, of a hub of another version for example, must not keep this hub from reading the next ones.
                match json::<Changed>(row, "changed") {
                    Ok(changed) => commits.changed.add(changed),
                    Err(error) => {
                        tracing::warn!(%error, number, "cannot read what another hub has committed: everything is read again");
                        commits.incomplete = true;
                    }
                }
                commits.count += 1;
            }
        }
        Ok(commits)
    }

    async fn note_present(&self, callers: &[String]) -> Result<(), StoreError> {
        self.perform(async |client| client.execute(NOTE_PRESENT, &[&callers]).await).await.map(drop)
    }

    async fn present(&self, within: Duration) -> Result<Vec<(String, Duration)>, StoreError> {
        let within = i64::try_from(within.as_millis()).unwrap_or(PRESENCE_KEPT_MS);
        let rows = self.perform(async |client| client.query(PRESENT, &[&within]).await).await?;
        let seen =
            |row: &Row| Ok((text(row, "caller")?.to_owned(), Duration::from_millis(number(row, "ago_ms")?)));
        rows.iter().map(seen).collect()
    }

    async fn send(&self, command: &NewCommand) -> Result<Sent, StoreError> {
        let NewCommand { id, host, caller, method, params, expires_ms } = command;
        let (id, caller, params) = (id.to_string(), caller.to_string(), params.to_string());
        let expires = i64::try_from(*expires_ms).unwrap_or(i64::MAX);
        let sent = async |client: &PreparedClient| {
            client
                .execute(
                    SEND,
                    &[&id, &self.name(), &host.as_str(), &caller, method, &params, &expires, &CHANNEL],
                )
                .await
        };
        Ok(if self.perform(sent).await? == 0 { Sent::NotConnected } else { Sent::Yes })
    }

    async fn take_commands(&self, executing: &[CommandId]) -> Result<Vec<CommandRow>, StoreError> {
        let executing: Vec<String> = executing.iter().map(ToString::to_string).collect();
        let taken = async |client: &PreparedClient| {
            client.query(TAKE, &[&self.name(), &self.epoch(), &executing]).await
        };
        let mut rows = self.perform(taken).await?;
        rows.sort_by_key(|row| row.try_get::<_, i64>("number").unwrap_or(i64::MAX));
        let readable = |row: &Row| match command_row(row) {
            Ok(command) => Some(command),
            Err(error) => {
                tracing::error!(%error, "a command of another hub cannot be read");
                None
            }
        };
        Ok(rows.iter().filter_map(readable).collect())
    }

    async fn reply(&self, command: CommandId, reply: &Value) -> Result<(), StoreError> {
        let stored = async |client: &PreparedClient| {
            client.execute(REPLY, &[&command.to_string(), &reply.to_string(), &CHANNEL]).await
        };
        self.perform(stored).await.map(drop)
    }

    async fn command_states(
        &self,
        commands: &[CommandId],
    ) -> Result<Vec<(CommandId, CommandState)>, StoreError> {
        let ids: Vec<String> = commands.iter().map(ToString::to_string).collect();
        let rows = self.perform(async |client| client.query(STATES, &[&ids]).await).await?;
        rows.iter().map(|row| Ok((command_id(row)?, command_state(row)?))).collect()
    }

    async fn withdraw(&self, command: CommandId) -> Result<bool, StoreError> {
        let withdrawn = async |client: &PreparedClient| {
            client.execute(WITHDRAW, &[&command.to_string(), &self.name()]).await
        };
        Ok(self.perform(withdrawn).await? > 0)
    }
}

fn unavailable(error: &Error) -> StoreError {
    StoreError::Unavailable(describe(error))
}

fn no_answer() -> StoreError {
    StoreError::Unavailable(format!("PostgreSQL did not answer within {} s", ANSWER_TIMEOUT.as_secs()))
}
