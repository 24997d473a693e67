//! Opens every connection to PostgreSQL, so that all have the same encryption and password.

use tokio_postgres::{Client, Config, Connection, Error, Socket};

use super::address::PostgresAddress;
use super::password;
use super::tls::{TlsSetup, TlsStream};
use crate::StoreError;

/// The task of a connection, which its owner has to drive.
pub(super) type PgTask = Connection<Socket, TlsStream>;

/// How to connect to one database.
#[derive(Clone)]
pub(super) struct Connector {
    config: Config,
    tls: TlsSetup,
    pub(super) address: PostgresAddress,
}

impl Connector {
    /// Reads the files that the address names.
    pub(super) fn new(address: &PostgresAddress) -> Result<Self, StoreError> {
        let mut config = address.config.clone();
        config.application_name("plexus");
        let password = password::find(address).map_err(|error| StoreError::Unusable(error.to_string()))?;
        if let Some(password) = password {
            config.password(password.bytes());
        }
        let tls = TlsSetup::new(&address.encryption);
        let tls = tls.map_err(|error| StoreError::Unusable(error.to_string()))?;
        if let Some(weakness) = address.weakness() {
            tracing::warn!("{weakness}");
        }
        Ok(Self { config, tls, address: address.clone() })
    }

    pub(super) async fn connect(&self) -> Result<(Client, PgTask), Error> {
        self.config.connect(self.tls.clone()).await
    }
}
