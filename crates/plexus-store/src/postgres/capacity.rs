//! What a hub that joins stores about itself in the row of its host: labels, slots, and the version of the schema that it was written for. The settings of the
//! hub are the only source of labels and slots, so each hub replaces those of the hub before.

use plexus_protocol::HostName;

use super::schema;
use crate::fleet::Capacity;
use crate::rows::Stored;
use crate::sql::Database;
use crate::sql::columns::Json;

const STORE: &str = "UPDATE hosts SET labels = ?2, slots = ?3, schema_version = ?4 WHERE name = ?1";

/// Stores labels, slots and schema version in the row of the host.
pub(super) fn store(database: &dyn Database, host: &HostName, capacity: &Capacity) -> Stored<()> {
    let Capacity { labels, slots } = capacity;
    database.run(STORE, (host.as_str(), Json(labels), slots.as_ref(), schema::VERSION))?;
    Ok(())
}
