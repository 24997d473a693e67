//! The end of a run: why it came, and what is settled when its process is gone.

use plexus_store::Change;
use serde_json::Value;

use super::changes::{Asked, Reply};
use super::owner::{Closing, Owner};
use super::run::Phase;
use super::turn::Ending;
use crate::kill_point::kill_point;

/// How many lines of stderr a failed turn shows.
const STDERR_LINES: usize = 20;

/// Why a run ends.
#[derive(Debug)]
pub(super) enum Cause {
    /// Its process ended by itself.
    Ended,
    /// Someone wanted it to.
    Stopped(String),
    /// It cannot go on: a stable word, and what a person should know.
    Failed(&'static str, String),
}

impl Owner {
    /// Ends the process, then settles the run.
    pub(super) async fn end_run(&mut self, cause: Cause) -> Result<(), Closing> {
        if let Some(run) = &self.run
            && let Some(keeper) = &run.keeper
        {
            keeper.stop(&run.dir, &self.row.id.to_string()).await;
        }
        self.finish_run(cause).await
    }

    /// The process is gone: reads the rest, then settles what was open. A prompt it had not read goes to the next.
    pub(super) async fn finish_run(&mut self, cause: Cause) -> Result<(), Closing> {
        Box::pin(self.read_all()).await?;
        let Some(run) = self.run.take() else { return Ok(()) };
        // What it was asked to change holds for the next one.
        let asked: Vec<Asked> = self.requests.drain().map(|(_, asked)| asked).collect();
        let settled: Vec<(Change, Reply)> = asked.into_iter().map(|asked| self.settle(asked, true)).collect();
        self.hub.keeper_is(self.row.id, None);
        let exit = plexus_agent::read_exit(&run.dir);
        let stderr = plexus_agent::stderr_tail(&run.dir, STDERR_LINES);
        kill_point("end", "process gone");
        let mut changes = self.withdraw_all(run.key, "the agent's process ended");
        changes.push(Change::EndRun(run.key, serde_json::to_value(&exit).unwrap_or(Value::Null)));

        // A prompt that was never sent to this process goes to the next as it is; one that it was sent but had not
        // read, once.
        let unread = self.turn.as_ref().is_some_and(|turn| {
            let sent = turn.bound.as_ref().is_some_and(|(bound, _)| *bound == run.key.run);
            let was_ready = matches!(run.phase, Phase::Ready | Phase::Ending { .. });
            matches!(cause, Cause::Ended)
                && was_ready
                && (!sent
                    || !turn.progress.acknowledged && !turn.progress.moved && turn.progress.result.is_none())
        });
        if unread {
            if let Some(turn) = self.turn.as_mut() {
                turn.progress.moved |= turn.bound.take().is_some();
                turn.progress.ready = None;
            }
            // It goes to another process once, whichever hub sends it there.
            changes.push(self.progress());
        } else if let Some(turn) = &self.turn {
            let ending = match cause {
                Cause::Stopped(why) => match turn.progress.out_of.clone() {
                    Some(what) => Ending::out_of(what),
                    None => Ending::interrupted(why),
                },
                Cause::Failed(reason, message) => Ending::failed(reason, message, stderr),
                Cause::Ended => {
                    turn.ending(self.head()).unwrap_or_else(|| ended_early(exit.as_ref(), stderr))
                }
            };
            self.end_turn(ending, &mut changes);
        }
        let (configured, replies): (Vec<Change>, Vec<Reply>) = settled.into_iter().unzip();
        changes.extend(configured);
        self.commit_held(changes).await?;
        kill_point("end", "settled");
        for reply in replies {
            let _ = reply.send(Ok(()));
        }
        if let Err(error) = run.dir.remove_secrets() {
            tracing::warn!(session = %self.row.id, %error, "the run's MCP config could not be removed");
        }
        self.sweep().await;
        if unread {
            Box::pin(self.ensure_run()).await?;
        }
        Ok(())
    }

    /// A keeper ends all that stems from its child; one that was killed could not.
    async fn sweep(&self) {
        let session = self.row.id.to_string();
        let swept = tokio::task::spawn_blocking(move || plexus_agent::sweep(&session)).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!(session = %self.row.id, %error, "stragglers cannot be looked for");
        }
    }

    /// Ends the turn in progress, if any, for a reason of ours.
    pub(super) async fn fail_turn(&mut self, reason: &'static str, message: String) -> Result<(), Closing> {
        let mut changes = Vec::new();
        self.end_turn(Ending::failed(reason, message, Vec::new()), &mut changes);
        self.commit_held(changes).await
    }
}

fn ended_early(exit: Option<&plexus_agent::Exit>, stderr: Vec<String>) -> Ending {
    match exit {
        Some(plexus_agent::Exit { error: Some(error), .. }) => {
            Ending::failed("cannot_start", format!("the agent could not be started: {error}"), stderr)
        }
        Some(plexus_agent::Exit { code: Some(code), .. }) => Ending::failed(
            "exited",
            format!("the agent exited with code {code} before its turn was over"),
            stderr,
        ),
        Some(plexus_agent::Exit { signal: Some(signal), .. }) => {
            Ending::failed("killed", format!("the agent was ended by signal {signal}"), stderr)
        }
        _ => Ending::failed(
            "orphaned",
            "the agent's keeper was killed; how the agent ended is not known".to_owned(),
            stderr,
        ),
    }
}
