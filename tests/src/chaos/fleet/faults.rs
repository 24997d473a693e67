//! Carries out the faults of a plan, and repairs each of them: at the end every hub runs, every link is sound and the database accepts writes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join_all;
use plexus_testkit::hub_process::HubProcess;
use plexus_testkit::postgres::Postgres;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::{Mutex, RwLock};
use tokio::time::{Instant, sleep};

use super::link::{Link, State};
use super::plan::Fault;

/// The time limit for a hub to be ready again. The database may be unavailable in the meantime.
const READY_WITHIN: Duration = Duration::from_secs(120);
const START_AGAIN: Duration = Duration::from_millis(100);

/// The variable that makes the clock of a hub wrong.
const CLOCK: &str = "PLEXUS_CLOCK_OFFSET_SECS";

/// Hubs, links and the database of a run.
pub(super) struct Machines {
    pub(super) hubs: Vec<Mutex<HubProcess>>,
    pub(super) links: Vec<Link>,
    pub(super) server: RwLock<Arc<Postgres>>,
}

impl Machines {
    /// Carries out faults that happen together.
    pub(super) async fn fail(&self, together: &[Fault]) -> anyhow::Result<()> {
        try_join_all(together.iter().map(|fault| self.fail_once(*fault))).await.map(drop)
    }

    async fn fail_once(&self, fault: Fault) -> anyhow::Result<()> {
        match fault {
            Fault::KillHub(hub, away, clock) => self.kill_hub(hub, away, clock).await,
            Fault::StopHub(hub, time) => self.stop_hub(hub, time).await,
            Fault::KillDatabase(away) => self.kill_database(away).await,
            Fault::Promote => self.promote().await,
            Fault::Cut(hub, time) => self.disturb(hub, State::Cut, time).await,
            Fault::Deaf(hub, direction, time) => self.disturb(hub, State::Deaf(direction), time).await,
            Fault::Slow(hub, by, time) => self.disturb(hub, State::Slow(by), time).await,
        }
    }

    async fn disturb(&self, hub: usize, state: State, time: Duration) -> anyhow::Result<()> {
        self.links[hub].set(state);
        sleep(time).await;
        self.links[hub].set(State::Sound);
        Ok(())
    }

    async fn kill_hub(&self, hub: usize, away: Duration, clock: i64) -> anyhow::Result<()> {
        let mut process = self.hubs[hub].lock().await;
        process.kill9().await?;
        sleep(away).await;
        process.set_env(CLOCK, &clock.to_string());
        let started = Instant::now();
        // A hub without a database does not start.
        while let Err(error) = process.restart().await {
            anyhow::ensure!(started.elapsed() < READY_WITHIN, "hub {hub} does not start again: {error}");
            sleep(START_AGAIN).await;
        }
        Ok(())
    }

    async fn stop_hub(&self, hub: usize, time: Duration) -> anyhow::Result<()> {
        let process = self.hubs[hub].lock().await;
        let pid = Pid::from_raw(process.pid().cast_signed()).context("a pid")?;
        kill_process(pid, Signal::STOP)?;
        sleep(time).await;
        kill_process(pid, Signal::CONT).context("a hub ended while it was stopped")
    }

    async fn kill_database(&self, away: Duration) -> anyhow::Result<()> {
        let server = Arc::clone(&*self.server.read().await);
        blocking(&server, Postgres::kill9).await?;
        sleep(away).await;
        blocking(&server, Postgres::restart).await
    }

    /// Replaces the database by a standby that has all its commits.
    async fn promote(&self) -> anyhow::Result<()> {
        let mut server = self.server.write().await;
        let standby = Arc::new(blocking(&server, Postgres::standby).await?);
        blocking(&server, Postgres::wait_for_standby).await?;
        // Hubs commit for a while in this state.
        sleep(Duration::from_millis(300)).await;
        blocking(&server, Postgres::kill9).await?;
        blocking(&standby, Postgres::promote).await?;
        let socket: PathBuf = standby.socket();
        self.links.iter().for_each(|link| link.switch_to(&socket));
        *server = standby;
        Ok(())
    }
}

/// Runs a step that waits for processes.
async fn blocking<T: Send + 'static>(
    server: &Arc<Postgres>,
    step: fn(&Postgres) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let server = Arc::clone(server);
    tokio::task::spawn_blocking(move || step(&server)).await?
}
