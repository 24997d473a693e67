//! Where the connections of a store come from.

use plexus_protocol::HostName;

use super::Database;
use crate::StoreError;

/// A connection that can move between threads.
pub(crate) type Connection = Box<dyn Database + Send>;

/// Opens connections to a database.
pub(crate) trait Source: Send + Sync {
    /// Opens the connection that writes.
    fn writer(&self) -> Result<Connection, StoreError>;

    /// Opens a connection that only reads.
    fn reader(&self) -> Result<Connection, StoreError>;

    /// Finds out whether the transaction whose COMMIT had no answer was committed. If this returns `false`, it can never be committed.
    fn was_committed(&self, transaction: &str) -> Result<bool, StoreError>;

    /// The host of this hub, if hubs of other hosts share the database.
    fn host(&self) -> Option<&HostName> {
        None
    }

    /// Adds the name of the database to an error that a user has to repair.
    fn named(&self, error: StoreError) -> StoreError;
}
