//! Several hosts on one PostgreSQL database: who may write, what each learns of the others, and the commands between them.
#![cfg(test)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use plexus_protocol::budget::BudgetLimit;
use plexus_protocol::{ApprovalStatus, AskedOf, CommandId, Decider, HostLabel, HostName, SessionId};
use plexus_store::{
    Arbor as _, Capacity, Change, CommandState, FeedEntry, Fleet, HostRow, HostState, Ledger as _,
    NewCommand, News, OpenFilter, Refusal, RunKey, RunState, Sent, SqlStore, Store as _, StoreError,
    TurnStatus, Wake,
};
use plexus_testkit::postgres::Postgres;
use plexus_testkit::skip;
use serde_json::json;
use tokio::time::timeout;

use common::{NOW, host, new_session, postgres, question};

const LIMIT: Duration = Duration::from_secs(20);

/// An empty database.
struct Database {
    server: &'static Postgres,
    name: String,
}

impl Database {
    fn new(test: &str) -> Option<Self> {
        let Some(server) = Postgres::shared() else {
            skip(test, "PostgreSQL");
            return None;
        };
        Some(Self { server, name: server.database().unwrap() })
    }

    /// Joins as the hub of this host.
    fn join(&self, name: &str) -> SqlStore {
        postgres(&self.server.url(&self.name), &host(name)).unwrap()
    }

    fn sql(&self, sql: &str) -> String {
        self.server.psql(&self.name, &format!("SET search_path = plexus; {sql}")).unwrap()
    }
}

/// The fleet as this hub sees it, connected until the test ends.
async fn connected(store: &SqlStore) -> Arc<dyn Fleet> {
    let fleet = Arc::clone(store.fleet().unwrap());
    let connection = Arc::clone(&fleet);
    tokio::spawn(async move { connection.run().await });
    let has_lease = async {
        let is_own = |row: &HostRow| row.name == *fleet.host() && row.silent_ms.is_none();
        while !fleet.hosts().await.unwrap().iter().any(is_own) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, has_lease).await.unwrap();
    fleet
}

async fn create(store: &SqlStore, name: &str) -> Result<SessionId, StoreError> {
    let mut new = new_session(name);
    new.host = store.host().cloned();
    let id = new.id;
    store.commit(NOW, vec![Change::CreateSession(Box::new(new))]).await?;
    Ok(id)
}

fn notice(session: SessionId, text: &str) -> Change {
    Change::Notice { to: "operator".to_owned(), session, data: json!(text) }
}

fn is_unavailable(stored: Result<SessionId, StoreError>, why: &str) {
    match stored {
        Err(StoreError::Unavailable(text)) if text.contains(why) => {}
        other => panic!("{why}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_was_replaced_writes_nothing() {
    let Some(database) = Database::new("a_hub_that_was_replaced_writes_nothing") else { return };
    let first = database.join("one");
    create(&first, "before").await.unwrap();
    let second = database.join("one");
    is_unavailable(create(&first, "zombie").await, "another hub has replaced this one");
    create(&second, "after").await.unwrap();
    is_unavailable(create(&first, "zombie").await, "another hub has replaced this one");
    assert_eq!(database.sql("SELECT string_agg(name, ' ' ORDER BY ordinal) FROM sessions"), "before after");
}

fn set_state(host: &str, state: HostState) -> Change {
    Change::SetHostState { host: host_name(host), state, by: Decider::Operator }
}

fn host_name(name: &str) -> HostName {
    HostName::try_from(name.to_owned()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_lost_host_goes_on() {
    let Some(database) = Database::new("nothing_of_a_lost_host_goes_on") else { return };
    let (one, two) = (database.join("one"), database.join("two"));
    let parent = create(&one, "parent").await.unwrap();
    one.commit(NOW, vec![Change::SetBudget(parent, vec![(BudgetLimit::ToolCalls, 10)])]).await.unwrap();
    let mut new = new_session("child");
    (new.host, new.answers_to) = (two.host().cloned(), AskedOf::Session { id: parent });
    let child = new.id;
    let run = RunKey { session: child, run: 1 };
    let approval = question(child, 1, "toolu_1");
    two.commit(
        NOW,
        vec![
            Change::CreateSession(Box::new(new)),
            Change::SetBudget(child, vec![(BudgetLimit::ToolCalls, 6)]),
            Change::Spend(child, BudgetLimit::ToolCalls, 2),
            Change::StartRun { key: run, state: RunState::Starting, token_hash: Some("hash".to_owned()) },
            Change::StartTurn { session: child, turn: 1, prompt: "go".to_owned(), woken_to: None },
            Change::Ask(Box::new(approval.clone())),
        ],
    )
    .await
    .unwrap();

    let lost = one.commit(NOW, vec![set_state("two", HostState::Lost)]).await.unwrap();
    assert_eq!(lost.approvals[0].approval.status, ApprovalStatus::Withdrawn);
    assert_eq!(lost.ended_tokens.len(), 1);
    is_unavailable(create(&two, "zombie").await, "declared lost");
    let turn = one.turn(child, 1).await.unwrap().unwrap();
    assert_eq!(turn.status, TurnStatus::Failed);
    assert!(one.run_of_token("hash").await.unwrap().is_none());
    assert!(one.open_approvals(OpenFilter::All).await.unwrap().is_empty());
    let left = one.budget(parent).await.unwrap();
    assert_eq!(left[0].left(), 8, "what the child has not used is free again: {left:?}");
    // The feed of its parent has an entry for the failed turn.
    let feed = one.feed(&AskedOf::Session { id: parent }.key(), 0, 10).await.unwrap();
    assert!(
        feed.iter().any(|row| matches!(row.entry, FeedEntry::Finished { status: TurnStatus::Failed, .. }))
    );
    // To lose it again changes nothing. It cannot be drained before its hub has started.
    one.commit(NOW, vec![set_state("two", HostState::Lost)]).await.unwrap();
    let drained = one.commit(NOW, vec![set_state("two", HostState::Draining)]).await;
    assert!(matches!(drained, Err(StoreError::Refused(Refusal::HostLost(_)))), "{drained:?}");

    let two = database.join("two");
    create(&two, "after").await.unwrap();
    assert_eq!(database.sql("SELECT state FROM hosts WHERE name = 'two'"), "rejoined");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_drained_and_removed() {
    let Some(database) = Database::new("a_host_is_drained_and_removed") else { return };
    let (one, two) = (database.join("one"), database.join("two"));
    let session = create(&two, "a").await.unwrap();
    one.commit(NOW, vec![set_state("two", HostState::Draining)]).await.unwrap();
    let refused = create(&two, "b").await;
    assert!(matches!(refused, Err(StoreError::Refused(Refusal::HostDrains(_)))), "{refused:?}");
    let removed = one.commit(NOW, vec![set_state("two", HostState::Removed)]).await;
    assert!(matches!(removed, Err(StoreError::Refused(Refusal::HostInUse(_)))), "{removed:?}");
    two.commit(NOW, vec![Change::DeleteSession(session)]).await.unwrap();
    one.commit(NOW, vec![set_state("two", HostState::Removed)]).await.unwrap();
    is_unavailable(two.commit(NOW, vec![notice(session, "x")]).await.map(|_| session), "declared lost");
    let unknown = one.commit(NOW, vec![set_state("two", HostState::Active)]).await;
    assert!(matches!(unknown, Err(StoreError::Refused(Refusal::NoSuchHost(_)))), "{unknown:?}");
    // Another machine may use the name.
    let mut other = host("two");
    other.machine = "another machine".to_owned();
    postgres(&database.server.url(&database.name), &other).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_has_lost_commits_is_noticed() {
    let Some(database) = Database::new("a_database_that_has_lost_commits_is_noticed") else { return };
    let (one, two) = (database.join("one"), database.join("two"));
    create(&one, "a").await.unwrap();
    let restored = database.sql("SELECT last_commit FROM hosts WHERE name = 'one'");
    create(&one, "b").await.unwrap();
    // As after a restore: the row is as it was before the last commit.
    database.sql(&format!("UPDATE hosts SET last_commit = '{restored}' WHERE name = 'one'"));
    is_unavailable(create(&one, "c").await, "has lost commits");
    is_unavailable(create(&one, "d").await, "has lost commits");
    create(&two, "e").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hosts_that_write_at_once_share_one_feed_and_one_audit_log() {
    let test = "hosts_that_write_at_once_share_one_feed_and_one_audit_log";
    let Some(database) = Database::new(test) else { return };
    let stores: Vec<Arc<SqlStore>> =
        ["one", "two", "three"].iter().map(|name| Arc::new(database.join(name))).collect();
    let session = create(&stores[0], "shared").await.unwrap();
    let writers = stores.iter().enumerate().map(|(i, store)| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            for n in 0..30 {
                store.commit(NOW, vec![notice(session, &format!("{i}-{n}"))]).await.unwrap();
                create(&store, &format!("s-{i}-{n}")).await.unwrap();
            }
        })
    });
    for writer in futures::future::join_all(writers).await {
        writer.unwrap();
    }
    let numbers = database.sql("SELECT count(*) || ' ' || min(number) || ' ' || max(number) FROM feed");
    assert_eq!(numbers, "90 1 90");
    let checked = stores[1].check_audit(plexus_protocol::audit::AuditHead::start(), 1000).await.unwrap();
    assert!(
        matches!(&checked, plexus_store::AuditCheck::Fits(head) if head.number == 91),
        "one entry for each session: {checked:?}"
    );
    // Transactions are numbered without gaps, in the order of their commits.
    let gaps = "SELECT count(*) FROM (SELECT number - lag(number) OVER (ORDER BY number) AS step FROM commits) c WHERE step <> 1";
    assert_eq!(database.sql(gaps), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_search_index_hides_no_commit_of_another_host() {
    let Some(database) = Database::new("the_search_index_hides_no_commit_of_another_host") else { return };
    let (one, two) = (database.join("one"), database.join("two"));
    let here = connected(&one).await;
    let seen = here.last_commit().await.unwrap();
    for round in 0..5 {
        // Each session has an audit entry and a node, which the next search adds to the index.
        create(&two, &format!("two-{round}")).await.unwrap();
        create(&one, &format!("one-{round}")).await.unwrap();
        let (a, b) = tokio::join!(two.search("word", None, None, 1), one.search("word", None, None, 1));
        assert!(a.unwrap().is_empty() && b.unwrap().is_empty());
        create(&two, &format!("after-{round}")).await.unwrap();
    }
    let checked = one.check_audit(plexus_protocol::audit::AuditHead::start(), 1000).await.unwrap();
    assert!(matches!(&checked, plexus_store::AuditCheck::Fits(head) if head.number == 15), "{checked:?}");
    let commits = here.commits_after(seen).await.unwrap();
    assert_eq!((commits.count, commits.incomplete), (10, false), "{commits:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_hub_learns_what_the_others_commit() {
    let Some(database) = Database::new("each_hub_learns_what_the_others_commit") else { return };
    let (one, two) = (database.join("one"), database.join("two"));
    let (here, there) = (connected(&one).await, connected(&two).await);
    let seen = here.last_commit().await.unwrap();
    let session = create(&two, "worker").await.unwrap();
    common::start_run(&two, session).await;
    common::start_turn(&two, session, 1).await;
    let approval = common::ask(&two, common::question(session, 1, "t")).await;
    there.wake(Wake::All);
    while timeout(LIMIT, here.woken()).await.unwrap() != News::Commits {}
    let commits = here.commits_after(seen).await.unwrap();
    assert!(commits.changed.approvals[&approval].is_pending && commits.changed.sessions.contains(&session));
    assert!(commits.changed.feed.contains("operator") && !commits.changed.rules && !commits.incomplete);
    assert_eq!(commits.count, 4);
    let own = there.commits_after(seen).await.unwrap();
    assert_eq!((own.count, own.last), (0, commits.last), "its own commits are not reported to a hub");
    // A record that cannot be read counts as anything, and does not hide the next one.
    database.sql(&format!("UPDATE commits SET changed = '[' WHERE number = {}", commits.last - 1));
    let unreadable = here.commits_after(seen).await.unwrap();
    assert!(unreadable.incomplete && unreadable.last == commits.last, "{unreadable:?}");
    assert!(unreadable.changed.approvals.contains_key(&approval));
    // What was deleted before it was read counts as anything.
    database.sql(&format!("DELETE FROM commits WHERE number <= {}", commits.last - 1));
    assert!(here.commits_after(seen).await.unwrap().incomplete);
    database.sql("DELETE FROM commits");
    let deleted = here.commits_after(seen).await.unwrap();
    assert!(deleted.incomplete && deleted.last == commits.last);
    // As after a failover to a standby without the last commits.
    database.sql("UPDATE writer SET number = number - 1");
    assert!(!here.has_lost_commits());
    let lost = here.commits_after(commits.last).await.unwrap();
    assert!(lost.incomplete && lost.last == commits.last - 1);
    assert!(here.has_lost_commits(), "this hub may have acted on them");
    is_unavailable(create(&one, "held").await, "has lost commits");
    // Commits of a hub that has not seen those that were lost do not hide the loss.
    let third = database.join("three");
    create(&third, "c").await.unwrap();
    create(&third, "d").await.unwrap();
    is_unavailable(create(&one, "held").await, "has lost commits");
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_commits_of_other_hosts_are_noticed_after_a_restart() {
    let test = "lost_commits_of_other_hosts_are_noticed_after_a_restart";
    let Some(database) = Database::new(test) else { return };
    let dir = tempfile::TempDir::new().unwrap();
    let counting = plexus_store::Host { commit_count: dir.path().join("commits"), ..host("one") };
    let join = || postgres(&database.server.url(&database.name), &counting).unwrap();
    let (one, two) = (join(), database.join("two"));
    create(&one, "a").await.unwrap();
    create(&two, "b").await.unwrap();
    connected(&one).await.commits_after(0).await.unwrap();
    drop(one);
    database.sql("DELETE FROM commits; UPDATE writer SET number = number - 1");
    let one = join();
    assert!(one.fleet().unwrap().has_lost_commits());
    is_unavailable(create(&one, "held").await, "has lost commits");
    one.fleet().unwrap().accept_rollback().unwrap();
    create(&join(), "c").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn later_commits_of_other_hosts_do_not_hide_lost_commits_from_the_next_hub() {
    let test = "later_commits_of_other_hosts_do_not_hide_lost_commits_from_the_next_hub";
    let Some(database) = Database::new(test) else { return };
    let dir = tempfile::TempDir::new().unwrap();
    let counting = plexus_store::Host { commit_count: dir.path().join("commits"), ..host("one") };
    let join = || postgres(&database.server.url(&database.name), &counting);
    let (one, two) = (join().unwrap(), database.join("two"));
    create(&one, "a").await.unwrap();
    create(&two, "b").await.unwrap();
    connected(&one).await.commits_after(0).await.unwrap();
    drop(one);
    database.sql("DELETE FROM commits; UPDATE writer SET number = number - 1");
    let third = database.join("three");
    for (attempt, name) in ["c", "d", "e"].into_iter().enumerate() {
        let one = join().unwrap();
        assert!(one.fleet().unwrap().has_lost_commits(), "{attempt}");
        create(&third, name).await.unwrap();
        connected(&one).await.commits_after(0).await.unwrap();
        is_unavailable(create(&one, "held").await, "has lost commits");
    }
    let one = join().unwrap();
    let here = connected(&one).await;
    here.accept_rollback().unwrap();
    create(&third, "f").await.unwrap();
    here.commits_after(0).await.unwrap();
    is_unavailable(create(&one, "held").await, "has lost commits");
    create(&join().unwrap(), "g").await.unwrap();
    assert_eq!(database.sql("SELECT state FROM hosts WHERE name = 'one'"), "rolled_back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_with_lost_or_accepted_commits_does_not_join_a_database_that_does_not_know_its_host() {
    let test = "a_hub_with_lost_or_accepted_commits_does_not_join_a_database_that_does_not_know_its_host";
    let Some(database) = Database::new(test) else { return };
    let dir = tempfile::TempDir::new().unwrap();
    let counting = plexus_store::Host { commit_count: dir.path().join("commits"), ..host("one") };
    for known in ["lost", "accepted", "00000000000000000003 00000000000000000009\n"] {
        std::fs::write(&counting.commit_count, known).unwrap();
        let refused = postgres(&database.server.url(&database.name), &counting).err();
        assert!(
            matches!(&refused, Some(StoreError::Unusable(why)) if why.contains("does not know host")),
            "{known}: {refused:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_taken_once_and_replied_to() {
    let Some(database) = Database::new("a_command_is_taken_once_and_replied_to") else { return };
    let (one, two) = (database.join("one"), database.join("two"));
    let (here, there) = (connected(&one).await, connected(&two).await);
    let command = |id| NewCommand {
        id,
        host: HostName::try_from("two".to_owned()).unwrap(),
        caller: json!({"kind": "operator"}),
        method: "claudecode.stop".to_owned(),
        params: json!({"text": "NUL \u{0} and \u{1}"}),
        expires_ms: 30_000,
    };
    let id = CommandId::random();
    assert_eq!(here.send(&command(id)).await.unwrap(), Sent::Yes);
    assert!(here.take_commands(&[]).await.unwrap().is_empty(), "it is for another host");
    while timeout(LIMIT, there.woken()).await.unwrap() != News::Any {}
    let taken = there.take_commands(&[]).await.unwrap();
    assert_eq!((taken.len(), taken[0].id, taken[0].params.clone()), (1, id, command(id).params));
    assert!(!taken[0].expired && !taken[0].taken_before);
    assert!(there.take_commands(&[id]).await.unwrap().is_empty());
    // As if the answer of the database had been lost: the hub has not executed it.
    let again = there.take_commands(&[]).await.unwrap();
    assert_eq!((again[0].id, again[0].taken_before), (id, false));
    assert_eq!(here.command_states(&[id]).await.unwrap(), [(id, CommandState::Taken)]);
    assert!(!here.withdraw(id).await.unwrap(), "it was taken");

    // The next hub of that host finds it again, and the earlier one takes nothing any more.
    let again = database.join("two");
    let next = connected(&again).await;
    let unread = CommandId::random();
    here.send(&command(unread)).await.unwrap();
    assert!(there.take_commands(&[]).await.unwrap().is_empty());
    let taken: Vec<_> =
        next.take_commands(&[]).await.unwrap().iter().map(|it| (it.id, it.taken_before)).collect();
    assert_eq!(taken, [(id, true), (unread, false)]);
    next.reply(id, &json!({"ok": [1]})).await.unwrap();
    let states = here.command_states(&[id, CommandId::random()]).await.unwrap();
    assert_eq!(states, [(id, CommandState::Replied(json!({"ok": [1]})))]);

    let withdrawn = CommandId::random();
    here.send(&command(withdrawn)).await.unwrap();
    assert!(here.withdraw(withdrawn).await.unwrap());
    assert!(next.take_commands(&[unread]).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_host_is_noticed_and_a_name_belongs_to_one_machine() {
    let test = "a_silent_host_is_noticed_and_a_name_belongs_to_one_machine";
    let Some(database) = Database::new(test) else { return };
    // The hub of the second one never renews its lease.
    let (one, _two) = (database.join("one"), database.join("two"));
    let here = connected(&one).await;
    let shown = async || -> Vec<(String, bool)> {
        let hosts = here.hosts().await.unwrap();
        hosts.iter().map(|row| (row.name.to_string(), row.silent_ms.is_some())).collect()
    };
    let expected = [("one".to_owned(), false), ("two".to_owned(), true)];
    let renewed = async {
        while shown().await != expected {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LIMIT, renewed).await.unwrap();
    let command = NewCommand {
        id: CommandId::random(),
        host: HostName::try_from("two".to_owned()).unwrap(),
        caller: json!({"kind": "operator"}),
        method: "claudecode.stop".to_owned(),
        params: json!({}),
        expires_ms: 30_000,
    };
    assert_eq!(here.send(&command).await.unwrap(), Sent::NotConnected);
    assert!(here.command_states(&[command.id]).await.unwrap().is_empty(), "nothing was sent");
    let mut impostor = host("one");
    impostor.machine = "another".to_owned();
    let refused = postgres(&database.server.url(&database.name), &impostor).err();
    assert!(matches!(&refused, Some(StoreError::Unusable(why)) if why.contains("--host")), "{refused:?}");
    create(&one, "still").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_commits_are_noticed_after_a_restart_and_can_be_accepted() {
    let Some(database) = Database::new("lost_commits_are_noticed_after_a_restart_and_can_be_accepted") else {
        return;
    };
    let dir = tempfile::TempDir::new().unwrap();
    let counting = plexus_store::Host { commit_count: dir.path().join("commits"), ..host("one") };
    let join = || postgres(&database.server.url(&database.name), &counting);
    let one = join().unwrap();
    create(&one, "a").await.unwrap();
    let saved = database.sql("SELECT epoch || ' ' || commits || ' ' || last_commit FROM hosts");
    let one = join().unwrap();
    create(&one, "b").await.unwrap();
    // As after a restore: the row is as it was before the last hub joined.
    let [epoch, commits, last] = saved.split(' ').collect::<Vec<_>>()[..] else { panic!("{saved}") };
    database.sql(&format!("UPDATE hosts SET epoch = {epoch}, commits = {commits}, last_commit = '{last}'"));
    is_unavailable(create(&one, "c").await, "has lost commits");
    assert!(one.fleet().unwrap().has_lost_commits());
    let one = join().unwrap();
    assert!(one.fleet().unwrap().has_lost_commits(), "also after a restart");
    is_unavailable(create(&one, "d").await, "has lost commits");
    one.fleet().unwrap().accept_rollback().unwrap();
    is_unavailable(create(&one, "e").await, "has lost commits");

    let one = join().unwrap();
    assert_eq!(database.sql("SELECT state FROM hosts"), "rolled_back");
    create(&one, "f").await.unwrap();
    assert!(!one.fleet().unwrap().has_lost_commits());
    create(&join().unwrap(), "g").await.unwrap();
    // A database that does not know the host at all is another one.
    let other = Database::new("another").unwrap();
    let refused = postgres(&other.server.url(&other.name), &counting).err();
    assert!(
        matches!(&refused, Some(StoreError::Unusable(why)) if why.contains("does not know host")),
        "{refused:?}"
    );
}

fn prompt(session: SessionId, turn: u64) -> Vec<Change> {
    let start = Change::StartTurn { session, turn, prompt: "go".to_owned(), woken_to: None };
    vec![Change::CheckSlot(session), start]
}

fn ends(session: SessionId, turn: u64) -> Vec<Change> {
    let last = Box::new(plexus_protocol::Event::Error {
        message: "over".to_owned(),
        reason: None,
        stderr: Vec::new(),
    });
    vec![Change::EndTurn { session, turn, status: TurnStatus::Failed, last, summary: None, cost_usd: 0.0 }]
}

fn is_full<T: std::fmt::Debug>(stored: Result<T, StoreError>) {
    assert!(matches!(stored, Err(StoreError::Refused(Refusal::NoFreeSlot { slots: 2, .. }))), "{stored:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_has_no_more_working_sessions_than_slots() {
    let Some(database) = Database::new("a_host_has_no_more_working_sessions_than_slots") else { return };
    let labels = ["gpu", "team=a"].map(|text| HostLabel::try_from(text.to_owned()).unwrap());
    let capacity = Capacity { labels: labels.into_iter().collect(), slots: Some(2) };
    let two_slots = plexus_store::Host { capacity: capacity.clone(), ..host("one") };
    let one = postgres(&database.server.url(&database.name), &two_slots).unwrap();
    let other = database.join("other");
    assert_eq!(connected(&other).await.hosts().await.unwrap()[0].capacity, capacity);

    // A new session has a slot before its first turn, also if several are created at once.
    let names: Vec<String> = (0..8).map(|i| format!("s{i}")).collect();
    let created = futures::future::join_all(names.iter().map(|name| create(&one, name))).await;
    let (taken, refused): (Vec<_>, Vec<_>) = created.into_iter().partition(Result::is_ok);
    assert_eq!((taken.len(), refused.len()), (2, 6));
    refused.into_iter().for_each(is_full);
    let ids: Vec<SessionId> = taken.into_iter().map(Result::unwrap).collect();
    let [first, second] = ids[..] else { unreachable!() };
    one.commit(NOW, prompt(first, 1)).await.unwrap();
    is_full(create(&one, "third").await);

    // The end of a turn frees the slot, and a later turn needs one again.
    one.commit(NOW, ends(first, 1)).await.unwrap();
    let third = create(&one, "third").await.unwrap();
    is_full(one.commit(NOW, prompt(first, 2)).await);
    one.commit(NOW, prompt(third, 1)).await.unwrap();
    one.commit(NOW, vec![Change::Archive(second)]).await.unwrap();
    one.commit(NOW, prompt(first, 2)).await.unwrap();
    is_full(one.commit(NOW, prompt(second, 1)).await);

    // Hosts without slots have no limit.
    for i in 0..4 {
        create(&other, &format!("other{i}")).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_goes_on_while_a_newer_one_adds_to_the_schema() {
    let Some(database) = Database::new("a_hub_goes_on_while_a_newer_one_adds_to_the_schema") else { return };
    let (one, two) = (database.join("one"), database.join("two"));
    let (here, there) = (connected(&one).await, connected(&two).await);
    // Every statement is used, and so prepared, before and after.
    let use_all = async |name: &str| {
        let session = create(&one, name).await.unwrap();
        one.commit(NOW, prompt(session, 1)).await.unwrap();
        one.commit(NOW, vec![notice(session, "a")]).await.unwrap();
        one.commit(NOW, ends(session, 1)).await.unwrap();
        assert!(one.session(session).await.unwrap().is_some());
        assert!(one.sessions_with_state().await.unwrap().iter().any(|found| found.row.id == session));
        assert!(one.open_approvals(OpenFilter::All).await.unwrap().is_empty());
        assert!(!one.feed("operator", 0, 10).await.unwrap().is_empty());
        assert_eq!(here.hosts().await.unwrap().len(), 2);
        assert!(there.commits_after(0).await.unwrap().count > 0);
        let command = NewCommand {
            id: CommandId::random(),
            host: host_name("two"),
            caller: json!({}),
            method: "m".to_owned(),
            params: json!({}),
            expires_ms: 10_000,
        };
        here.send(&command).await.unwrap();
        assert_eq!(there.take_commands(&[]).await.unwrap().len(), 1);
        there.reply(command.id, &json!(1)).await.unwrap();
        assert_eq!(here.command_states(&[command.id]).await.unwrap().len(), 1);
    };
    use_all("before").await;
    database.sql(
        "DO $$ DECLARE name TEXT; BEGIN FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'plexus' LOOP \
         EXECUTE format('ALTER TABLE plexus.%I ADD COLUMN later TEXT', name); END LOOP; END $$; \
         UPDATE schema_version SET version = version + 1, oldest = version",
    );
    use_all("after").await;
    create(&database.join("three"), "new").await.unwrap();
}
