//! Sign-in codes for the console. A code is valid once and for half a minute; it is exchanged for a token of its own. The
//! door that issues a code decides how it reaches the browser.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plexus_protocol::console::SignedIn;
use plexus_protocol::token::TokenRight;
use plexus_protocol::{Decider, Error, ErrorKind, TokenName};
use plexus_store::{Change, TokenRow};
use tokio::time::{Instant, sleep_until};

use crate::callers::secret::{new_token, token_hash};
use crate::errors::store_error;
use crate::tasks::Tasks;
use plexus_book::Commits;
use plexus_book::now;

/// How long a code is valid.
pub const CODE_VALID_FOR: Duration = Duration::from_secs(30);

/// How long a person stays signed in.
const SIGNED_IN_SECS: u64 = 24 * 60 * 60;

/// The beginning of the names of sign-in tokens.
const PREFIX: &str = "console-";

/// The codes that were issued and not used, by their hash.
#[derive(Default)]
pub(crate) struct SignInCodes(Mutex<HashMap<String, Issued>>);

struct Issued {
    until: Instant,
    /// Dropped when the code is used or expires.
    _carrier: Box<dyn Any + Send>,
}

impl SignInCodes {
    /// Issues a code. `carrier` is dropped when the code is used or expires.
    pub(crate) fn issue<T: Send + 'static>(
        self: &Arc<Self>,
        tasks: &Tasks,
        carrier: impl FnOnce(&str) -> Result<T, Error>,
    ) -> Result<String, Error> {
        let code = new_token().map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
        let until = Instant::now() + CODE_VALID_FOR;
        let issued = Issued { until, _carrier: Box::new(carrier(&code)?) };
        self.lock().insert(token_hash(&code), issued);
        let codes = Arc::clone(self);
        tasks.spawn_until_closing(async move {
            sleep_until(until).await;
            codes.forget_expired();
        });
        Ok(code)
    }

    /// Exchanges a code for a token; `None` for a code that was used, has expired or never existed.
    pub(crate) async fn sign_in(&self, commits: &Commits, code: &str) -> Result<Option<SignedIn>, Error> {
        if !self.take(code) {
            return Ok(None);
        }
        let token = new_token().map_err(|error| Error::new(ErrorKind::Internal, error.to_string()))?;
        let hash = token_hash(&token);
        let name = TokenName::try_from(format!("{PREFIX}{}", hash.get(..8).unwrap_or_default()))
            .map_err(|why| Error::new(ErrorKind::Internal, why.to_string()))?;
        let (created_at, expires_at) = (now(), now().saturating_add(SIGNED_IN_SECS));
        let row = TokenRow {
            name: name.clone(),
            right: TokenRight::Operator,
            created_at,
            expires_at: Some(expires_at),
        };
        let change = Change::CreateToken { token: row, hash, by: Decider::Operator };
        commits.commit(vec![change]).await.map_err(store_error)?;
        Ok(Some(SignedIn { name, token, expires_at }))
    }

    fn take(&self, code: &str) -> bool {
        let issued = self.lock().remove(&token_hash(code));
        issued.is_some_and(|issued| Instant::now() < issued.until)
    }

    fn forget_expired(&self) {
        let now = Instant::now();
        self.lock().retain(|_, issued| now < issued.until);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Issued>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_code_is_valid_once_and_until_it_expires() {
        let (codes, tasks) = (Arc::new(SignInCodes::default()), Tasks::default());
        let carrier = Arc::new(());
        let issue = || codes.issue(&tasks, |_| Ok(Arc::clone(&carrier))).unwrap();
        let first = issue();
        assert!(!codes.take("other") && codes.take(&first) && !codes.take(&first));
        assert_eq!(Arc::strong_count(&carrier), 1, "the carrier is dropped with the code");
        let second = issue();
        tokio::time::advance(CODE_VALID_FOR).await;
        assert!(!codes.take(&second));
        issue();
        tokio::time::advance(CODE_VALID_FOR).await;
        codes.forget_expired();
        assert_eq!(Arc::strong_count(&carrier), 1, "an expired code is forgotten");
    }
}
