//! Identifies the caller that a token belongs to, and waits for the end of the token's validity.

use std::time::Duration;

use plexus_protocol::token::TokenRight;
use plexus_protocol::{Error, Principal};
use plexus_store::{RunState, Store, TokenKey, TokenRow};
use tokio::time::sleep;

use crate::callers::secret::token_hash;
use crate::errors::store_error;
use plexus_book::now;
use plexus_book::{Commits, Topic, next};

/// An identified caller, with the token that identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The caller.
    pub principal: Principal,
    /// The token, if its validity can end.
    expires: Option<TokenKey>,
    /// How many tokens had ended before it was found valid.
    ended_before: u64,
}

impl Known {
    /// A caller that stays valid forever: identified by the operator's own token, or by the system.
    pub fn permanent(principal: Principal) -> Self {
        Self { principal, expires: None, ended_before: 0 }
    }

    /// Whether the validity can end.
    pub fn can_expire(&self) -> bool {
        self.expires.is_some()
    }
}

/// The caller that a token belongs to; `None` for an unknown token.
pub(crate) async fn identify(
    store: &dyn Store,
    commits: &Commits,
    operator_token: &str,
    token: &str,
) -> Result<Option<Known>, Error> {
    let hash = token_hash(token);
    // Comparing hashes reveals nothing about the token through timing.
    if hash == token_hash(operator_token) {
        return Ok(Some(Known::permanent(Principal::Operator)));
    }
    let ended_before = commits.signals().ended_tokens();
    if let Some(run) = store.run_of_token(&hash).await.map_err(store_error)? {
        let principal = Principal::Session { id: run.key.session, run: run.key.run };
        return Ok(Some(Known { principal, expires: Some(TokenKey::Run(run.key)), ended_before }));
    }
    let token = store.token_of_hash(&hash, now()).await.map_err(store_error)?;
    Ok(token.map(|TokenRow { name, right, .. }| {
        let principal = match right {
            TokenRight::Operator => Principal::Operator,
            right => Principal::Token { name: name.clone(), right },
        };
        Known { principal, expires: Some(TokenKey::Token(name)), ended_before }
    }))
}

/// Waits until the caller's token is no longer valid; forever if its validity cannot end.
pub(crate) async fn token_ends(store: &dyn Store, commits: &Commits, known: &Known) {
    let Some(expires) = &known.expires else { return std::future::pending().await };
    let mut signal = commits.signals().subscribe(Topic::Token(expires.to_string()));
    // The token of a run ends only with a signal. Most requests are over before, and need not read the run a second time.
    if matches!(expires, TokenKey::Run(_)) && commits.signals().ended_tokens() == known.ended_before {
        next(&mut signal).await;
    }
    loop {
        let expires_at = match expires {
            TokenKey::Run(key) => {
                let run = commits.retry(|| store.run(*key)).await;
                run.filter(|run| run.state != RunState::Ended).map(|_| None)
            }
            TokenKey::Token(name) => {
                let tokens = commits.retry(|| store.tokens(now())).await;
                tokens.into_iter().find(|token| token.name == *name).map(|token| token.expires_at)
            }
        };
        let Some(expires_at) = expires_at else { return };
        let remaining = expires_at.map(|at| Duration::from_secs(at.saturating_sub(now())));
        tokio::select! {
            () = next(&mut signal) => {}
            () = sleep(remaining.unwrap_or(Duration::MAX)) => {}
        }
    }
}
