//! `plexus down`: stops the hub and all its children. If no hub is running, it stops the children that one left.

use std::path::Path;
use std::time::{Duration, Instant};

use http::StatusCode;
use plexus_core::Launcher;
use plexus_server::{DataDir, DataDirError, EndedChildren, ServeError, end_children};
use serde_json::Value;

use crate::cli::{DownArgs, ServeArgs};
use crate::client::{CallError, Client};
use crate::error::{ExpectedError, system};
use crate::output;
use crate::serve::count;
use crate::settings::{self, StoreArgs};

/// How long a hub may take to exit, or to become reachable while it starts or stops.
const STOP_WITHIN: Duration = Duration::from_secs(30);
const RETRY_AFTER: Duration = Duration::from_millis(20);

/// Stops the hub and its children.
pub(crate) fn run(args: &DownArgs) -> Result<(), ExpectedError> {
    let dir = args.data_dir.resolve()?;
    if !dir.exists() {
        output::say(&format!("plexus: no hub is running in {}", dir.display()));
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(system)?;
    let outcome = runtime.block_on(down(args, &dir))?;
    output::say(&format!("plexus: {outcome}"));
    Ok(())
}

async fn down(args: &DownArgs, dir: &Path) -> Result<String, ExpectedError> {
    let client = Client::Operator { socket: DataDir::socket(dir) };
    let started = Instant::now();
    loop {
        match client.post("/down", String::new()).await {
            Ok((StatusCode::OK, body)) => {
                wait_until_free(dir).await?;
                let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
                let children = answer["children"].as_u64().unwrap_or_default();
                let children = usize::try_from(children).unwrap_or(usize::MAX);
                return Ok(format!("stopped the hub and {}", count(children)));
            }
            Ok((status, body)) => {
                let outcome = String::from_utf8_lossy(&body).into_owned();
                return Err(ExpectedError::Refused(format!("the hub answered {status}: {outcome}")));
            }
            Err(CallError::NotReached(_) | CallError::Lost(_) | CallError::Refused { .. }) => {}
        }
        // No hub listens: any children were left by a hub that has exited.
        let config = settings::config(ServeArgs {
            listen: None,
            data_dir: args.data_dir.clone(),
            store: StoreArgs::from_environment(),
            // It starts no agent, so a missing program does not matter.
            claude: Some(Launcher::default()),
            background: false,
        })?;
        match end_children(config).await {
            Ok(EndedChildren { count: 0, .. }) => {
                return Ok("no hub was running, and no children were running".to_owned());
            }
            Ok(EndedChildren { count: children, not_stored }) => {
                let stopped = format!("no hub was running; stopped {} of an earlier hub", count(children));
                return Ok(match not_stored {
                    None => stopped,
                    Some(error) => format!(
                        "{stopped}. The next hub stores this, because the store cannot be used now: {error}"
                    ),
                });
            }
            // A hub holds the lock but does not listen: it is starting or stopping.
            Err(ServeError::DataDir(DataDirError::Locked { .. })) if started.elapsed() < STOP_WITHIN => {
                tokio::time::sleep(RETRY_AFTER).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until the hub has released its directory, which is the last thing it does.
async fn wait_until_free(dir: &Path) -> Result<(), ExpectedError> {
    let started = Instant::now();
    loop {
        match DataDir::open(dir) {
            Ok(_) => return Ok(()),
            Err(DataDirError::Locked { .. }) if started.elapsed() < STOP_WITHIN => {
                tokio::time::sleep(RETRY_AFTER).await;
            }
            Err(error) => return Err(ServeError::from(error).into()),
        }
    }
}
