//! Identifies the caller that a token belongs to, and waits for the end of the token's validity.

use std::time::Duration;

use plexus_protocol::token::TokenRight;
use plexus_protocol::{Error, Principal};
use plexus_store::{RunState, Store, TokenKey, TokenRow};
use tokio::time::sleep;

use crate::errors::store_error;
use crate::secret::token_hash;
use plexus_book::now;
use plexus_book::{Commits, Topic, next};

/// An identified caller, with the token that identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The caller.
    pub principal: Principal,
    /// The token, if its validity can end.
    ends: Option<TokenKey>,
}

impl Known {
    /// A caller that stays valid forever: identified by the operator's own token, or by the system.
    pub fn for_good(principal: Principal) -> Self {
        Self { principal, ends: None }
    }

    /// Whether the validity can end.
    pub fn can_end(&self) -> bool {
        self.ends.is_some()
    }
}

/// The caller that a token belongs to; `None` for an unknown token.
pub(crate) async fn known_by(
    store: &dyn Store,
    operator_token: &str,
    token: &str,
) -> Result<Option<Known>, Error> {
    let hash = token_hash(token);
    // Comparing hashes reveals nothing about the token through timing.
    if hash == token_hash(operator_token) {
        return Ok(Some(Known::for_good(Principal::Operator)));
    }
    if let Some(run) = store.run_of_token(&hash).await.map_err(store_error)? {
        let principal = Principal::Session { id: run.key.session, run: run.key.run };
        return Ok(Some(Known { principal, ends: Some(TokenKey::Run(run.key)) }));
    }
    let token = store.token_of_hash(&hash, now()).await.map_err(store_error)?;
    Ok(token.map(|TokenRow { name, right, .. }| {
        let principal = match right {
            TokenRight::Operator => Principal::Operator,
            right => Principal::Token { name: name.clone(), right },
        };
        Known { principal, ends: Some(TokenKey::Token(name)) }
    }))
}

/// Waits until the caller's token is no longer valid; forever if its validity cannot end.
pub(crate) async fn token_ends(store: &dyn Store, commits: &Commits, known: &Known) {
    let Some(ends) = &known.ends else { return std::future::pending().await };
    let mut signal = commits.signals().subscribe(Topic::Token(ends.to_string()));
    loop {
        let ends_at = match ends {
            TokenKey::Run(key) => {
                let run = commits.retry(|| store.run(*key)).await;
                run.filter(|run| run.state != RunState::Ended).map(|_| None)
            }
            TokenKey::Token(name) => {
                let tokens = commits.retry(|| store.tokens(now())).await;
                tokens.into_iter().find(|token| token.name == *name).map(|token| token.expires_at)
            }
        };
        let Some(ends_at) = ends_at else { return };
        let left = ends_at.map(|at| Duration::from_secs(at.saturating_sub(now())));
        tokio::select! {
            () = next(&mut signal) => {}
            () = sleep(left.unwrap_or(Duration::MAX)) => {}
        }
    }
}
