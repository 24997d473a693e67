//! `plexus demo`: a hub with scripted agents in place of Claude Code, which needs no account and no network. `guide` shows one
//! agent at the terminal, `console` shows a tree of agents in the web console. This module owns the demo's hub and removes
//! everything at the end, even after Ctrl-C.

mod agents;
mod console;
mod guide;
mod show;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plexus_core::{Caller, Door, Hub, Launcher, ShutDown};
use plexus_protocol::Principal;
use plexus_server::{Config, Serving};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::level_filters::LevelFilter;

pub(crate) use agents::script;
use guide::Guide;

use crate::cli::DemoArgs;
use crate::error::{ExpectedError, system};
use crate::output::print;
use crate::serve::{Signals, log_to_stderr};

const NEXT: &str = "\nNext, with Claude Code installed:\n\n  \
    plexus run \"Fix the failing test\"   start an agent here, follow it and answer its approval requests\n  \
    plexus console                      see all agents in a browser; `plexus demo --console` shows that with scripted agents\n\n\
    docs/tour.md shows the first ten minutes.";

/// Runs the demo.
pub(crate) fn run(args: DemoArgs) -> Result<(), ExpectedError> {
    log_to_stderr(LevelFilter::WARN);
    let folder = tempfile::Builder::new().prefix("plexus-demo-").tempdir().map_err(system)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(system)?;
    let outcome = runtime.block_on(demo(&args, folder.path()));
    // A thread may still wait for a line of the terminal, or for a browser.
    runtime.shutdown_background();
    outcome
}

async fn demo(args: &DemoArgs, folder: &Path) -> Result<(), ExpectedError> {
    let mut signals = Signals::new()?;
    let work = folder.join("work");
    std::fs::create_dir(&work).map_err(system)?;
    let serving = Serving::start(config(args, folder)?).await?;
    let hub = DemoHub { hub: Arc::clone(serving.hub()), url: serving.url().to_owned() };
    let shown = async {
        if args.console {
            console::show(&hub, args, &work).await
        } else {
            Guide::new(&hub, args).lead(&work).await
        }
    };
    let outcome = tokio::select! {
        outcome = shown => outcome,
        _ = signals.next() => {
            print("\nEnding the demo.");
            Ok(())
        }
    };
    drop(hub);
    serving.stop(ShutDown::EndChildren).await;
    if outcome.is_ok() {
        print(NEXT);
    }
    outcome
}

fn config(args: &DemoArgs, folder: &Path) -> Result<Config, ExpectedError> {
    let data_dir = match &args.data_dir {
        Some(dir) => std::path::absolute(dir).map_err(system)?,
        None => folder.join("data"),
    };
    let mut config = Config::defaults(data_dir).map_err(system)?;
    // `main` runs the scripted agent when the program is called by this name.
    let claude = folder.join("claude");
    std::os::unix::fs::symlink(&config.hub.plexus, &claude).map_err(system)?;
    config.listen = ([127, 0, 0, 1], 0).into();
    config.hub.claude = Launcher::program_only(claude).map_err(system)?;
    // No credential of the user reaches an agent.
    config.hub.clean_env = true;
    config.hub.session_env = vec!["PATH".to_owned()];
    config.hub.idle_after = None;
    // The parents in the demo never answer, so approvals go straight to the user.
    config.hub.present_for = Duration::ZERO;
    Ok(config)
}

/// The hub of the demo, called as the operator.
struct DemoHub {
    hub: Arc<Hub>,
    url: String,
}

impl DemoHub {
    fn data_dir(&self) -> &Path {
        &self.hub.settings().data_dir
    }

    fn program(&self) -> &Path {
        &self.hub.settings().plexus
    }

    async fn call<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T, ExpectedError> {
        self.call_as(Principal::Operator, method, params).await
    }

    async fn call_as<T: DeserializeOwned>(
        &self,
        principal: Principal,
        method: &str,
        params: Value,
    ) -> Result<T, ExpectedError> {
        let answer = self.hub.call(Caller::of(principal, Door::Http), method, params).await;
        let answer = answer.map_err(|error| ExpectedError::Refused(error.to_string()))?;
        serde_json::from_value(answer).map_err(system)
    }

    async fn respond(&self, answer: Value) -> Result<(), ExpectedError> {
        self.call::<Value>("loopback.respond", answer).await.map(drop)
    }
}

/// The environment of the agents: the commands they run need a `PATH`.
fn environment() -> BTreeMap<&'static str, String> {
    std::env::var("PATH").ok().map(|path| ("PATH", path)).into_iter().collect()
}
