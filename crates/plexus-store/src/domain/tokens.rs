//! Tokens that the operator creates and revokes. A name can be used again once its token has expired or is revoked.

use plexus_protocol::{Decider, TokenName, UnixSeconds};

use super::{Commit, audit_entries};
use crate::rows::Stored;
use crate::{Refusal, TokenKey, TokenRow};

/// Whether a token that is not revoked can still be used.
pub(crate) fn is_unexpired(token: &TokenRow, now: UnixSeconds) -> bool {
    token.expires_at.is_none_or(|at| at > now)
}

impl Commit<'_> {
    pub(super) fn create_token(&mut self, token: &TokenRow, hash: &str, by: &Decider) -> Stored<()> {
        if self.token_is_in_use(&token.name)? {
            return Err(Refusal::TokenNameTaken(token.name.clone()).into());
        }
        self.rows.insert_token(token, hash, self.at)?;
        self.audit(audit_entries::token_created(self.at, token, by))
    }

    pub(super) fn revoke_token(&mut self, name: &TokenName, by: &Decider) -> Stored<()> {
        if !self.token_is_in_use(name)? {
            return Err(Refusal::NoSuchToken(name.clone()).into());
        }
        self.rows.revoke_tokens(name, self.at)?;
        self.published.ended_tokens.push(TokenKey::Token(name.clone()));
        self.audit(audit_entries::token_revoked(self.at, name, by))
    }

    fn token_is_in_use(&self, name: &TokenName) -> Stored<bool> {
        Ok(self.rows.tokens_named(name)?.iter().any(|token| is_unexpired(token, self.at)))
    }
}
