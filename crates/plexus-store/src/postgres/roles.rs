//! Roles of PostgreSQL for hosts. The tables, policies and functions behind them are in `host_roles.sql` and `host_view.sql`.

use async_trait::async_trait;
use plexus_protocol::HostName;
use postgres_protocol::password::scram_sha_256;
use uuid::Uuid;

use super::connection::PgConnection;
use super::fleet::PgFleet;
use super::prepared_client::PreparedClient;
use super::schema::HOST_VIEW;
use crate::sql::Database;
use crate::{Admission, HostAccess, HostRoles, Role, RoleError, StoreError};

/// PostgreSQL shortens longer names.
const ROLE_BYTES: usize = 63;

/// The most connections of a role: more than a hub and the one that replaces it open together, and too few to leave none for other hosts.
const CONNECTIONS: u32 = 32;
/// How often a role that opens connections again and again is tried to be shut out.
const SHUT_OUT_TRIES: u32 = 20;

const FACTS: &str = "SELECT pg_has_role(n.nspowner, 'USAGE') AS owns, r.rolcreaterole OR r.rolsuper AS creates_roles, r.rolname::TEXT AS name, \
    current_database()::TEXT AS database, \
    EXISTS (SELECT 1 FROM host_roles WHERE host = $1) AS is_added, \
    EXISTS (SELECT 1 FROM hosts WHERE name = $1 AND state <> 'removed') AS takes_part, \
    EXISTS (SELECT 1 FROM sessions WHERE host = $1) AS has_sessions \
    FROM pg_roles r, pg_namespace n WHERE r.rolname = current_user AND n.nspname = 'plexus'";
const ROLE_OF: &str = "SELECT role FROM host_roles WHERE host = $1";
const DISCONNECT: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1";

impl Role {
    /// The role of this connection. Rejects the role of another host, and a role whose rights were taken.
    pub(super) fn of(connection: &PgConnection, host: &HostName) -> Result<Self, StoreError> {
        let database: &dyn Database = connection;
        let Some(of) = database.value::<Option<String>>("SELECT host_of_role()", ())? else {
            return Ok(Self::Owner);
        };
        if of != host.as_str() {
            return Err(StoreError::Unusable(format!(
                "the role in the address is that of host `{of}`: use --host {of}"
            )));
        }
        if database.value::<Option<String>>("SELECT own_host()", ())?.is_none() {
            return Err(StoreError::Unusable(format!(
                "host `{of}` was declared lost or removed: run `plexus host add --renew {of}` on a hub whose role owns the tables"
            )));
        }
        Ok(Self::Runner)
    }

    /// See [`Database::content_scope`]. A runner cannot share texts with other hosts.
    pub(super) fn content_scope(self, host: &HostName) -> String {
        match self {
            Self::Owner => String::new(),
            Self::Runner => format!("{host}:"),
        }
    }
}

/// Whether a host already has a role, and the name of the database.
struct Facts {
    is_added: bool,
    database: String,
}

impl PgFleet {
    async fn facts(&self, host: &HostName, admission: Admission) -> Result<Facts, RoleError> {
        if self.role() == Role::Runner {
            return Err(RoleError::NotOwner);
        }
        let row = self.perform(async |client| client.query_one(FACTS, &[&host.as_str()]).await).await?;
        let unreadable = |error: tokio_postgres::Error| StoreError::Unusable(error.to_string());
        let flag = |column: &str| row.try_get::<_, bool>(column).map_err(unreadable);
        let name: String = row.try_get("name").map_err(unreadable)?;
        let is_added = flag("is_added")?;
        if !flag("owns")? {
            return Err(RoleError::NotOwner);
        }
        if !flag("creates_roles")? {
            return Err(RoleError::CannotCreateRoles(name));
        }
        match admission {
            Admission::New if is_added => Err(RoleError::Exists(host.clone())),
            Admission::New if flag("takes_part")? => Err(RoleError::IsOwner(host.clone())),
            Admission::New if flag("has_sessions")? => Err(RoleError::WasUsed(host.clone())),
            Admission::Renewed if !is_added => Err(RoleError::NotAdded(host.clone())),
            Admission::New | Admission::Renewed => {
                Ok(Facts { is_added, database: row.try_get("database").map_err(unreadable)? })
            }
        }
    }

    async fn role_of(&self, host: &HostName) -> Result<Option<String>, StoreError> {
        let row = self.perform(async |client| client.query_opt(ROLE_OF, &[&host.as_str()]).await).await?;
        row.map(|row| row.try_get(0)).transpose().map_err(|error| StoreError::Unusable(error.to_string()))
    }

    /// Executes statements in a transaction of their own. Others use the connection at the same time, so they are sent together.
    async fn execute_together(&self, statements: &str) -> Result<(), StoreError> {
        let durable = format!("SET LOCAL synchronous_commit = on; {statements}");
        self.perform(async |client| client.batch_execute(&durable).await).await
    }
}

#[async_trait]
impl HostRoles for PgFleet {
    fn role(&self) -> Role {
        self.role
    }

    async fn check(&self, host: &HostName, admission: Admission) -> Result<(), RoleError> {
        let facts = self.facts(host, admission).await?;
        role_name(&facts.database, host).map(drop)
    }

    async fn admit(&self, host: &HostName, admission: Admission) -> Result<HostAccess, RoleError> {
        let facts = self.facts(host, admission).await?;
        let role = match self.role_of(host).await? {
            Some(role) => role,
            None => role_name(&facts.database, host)?,
        };
        let password = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        // The server may log statements, so it gets only what verifies the password.
        let verifier = quoted(&scram_sha_256(password.as_bytes()), '\'');
        let (name, literal, host) = (quoted(&role, '"'), quoted(&role, '\''), quoted(host.as_str(), '\''));
        let change = if facts.is_added {
            format!(
                "ALTER ROLE {name} CONNECTION LIMIT {CONNECTIONS} PASSWORD {verifier}; UPDATE host_roles SET stopped_at = NULL WHERE role = {literal}"
            )
        } else {
            // The owner becomes a member: only then it may end connections of the role.
            format!(
                "CREATE ROLE {name} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS CONNECTION LIMIT {CONNECTIONS} PASSWORD {verifier}; \
                 GRANT {name} TO CURRENT_USER; INSERT INTO host_roles (role, host) VALUES ({literal}, {host})"
            )
        };
        if facts.is_added {
            self.shut_out(&role).await?;
        }
        self.execute_together(&format!("{change}; {HOST_VIEW}")).await?;
        // A client with the old password may still be connected.
        self.disconnect(&role).await?;
        let address = &self.connector.address;
        Ok(HostAccess { url: address.for_user(&role), password, is_local: address.is_local() })
    }

    async fn stop(&self, host: &HostName) -> Result<(), StoreError> {
        if self.role == Role::Runner {
            return Ok(());
        }
        let Some(role) = self.role_of(host).await? else { return Ok(()) };
        let name = quoted(&role, '"');
        self.shut_out(&role).await?;
        self.execute_together(&format!("SELECT stop_runner({})", quoted(&role, '\''))).await?;
        // Its hub connects again, to learn that it was stopped.
        self.execute_together(&format!("ALTER ROLE {name} CONNECTION LIMIT {CONNECTIONS}")).await
    }

    async fn remove(&self, host: &HostName) -> Result<(), StoreError> {
        if self.role == Role::Runner {
            return Ok(());
        }
        let Some(role) = self.role_of(host).await? else { return Ok(()) };
        self.shut_out(&role).await?;
        let (name, literal) = (quoted(&role, '"'), quoted(&role, '\''));
        let forget = format!(
            "DELETE FROM host_roles WHERE role = {literal}; DROP OWNED BY {name}; ALTER ROLE {name} NOLOGIN"
        );
        self.execute_together(&forget).await?;
        if let Err(error) = self.execute_together(&format!("DROP ROLE {name}")).await {
            // It can own objects in other databases of the server.
            tracing::warn!(role, %error, "the role of the removed host stays, but cannot log in: drop it yourself, with what belongs to it");
        }
        Ok(())
    }
}

impl PgFleet {
    /// Ends the connections of a role, and lets it open no others. An open transaction of the role could keep every change of the role, and of its rights,
    /// waiting: so its connections end first, and again if it was faster.
    async fn shut_out(&self, role: &str) -> Result<(), StoreError> {
        let shut_out =
            format!("SET LOCAL lock_timeout = '200ms'; ALTER ROLE {} CONNECTION LIMIT 0", quoted(role, '"'));
        let mut tries = 0;
        loop {
            self.disconnect(role).await?;
            match self.execute_together(&shut_out).await {
                Ok(()) => break,
                Err(error) if tries == SHUT_OUT_TRIES => return Err(error),
                Err(_) => tries += 1,
            }
        }
        self.disconnect(role).await
    }

    async fn disconnect(&self, role: &str) -> Result<(), StoreError> {
        let disconnect = async |client: &PreparedClient| client.query(DISCONNECT, &[&role]).await;
        self.perform(disconnect).await.map(drop)
    }
}

/// Roles are common to all databases of a server.
fn role_name(database: &str, host: &HostName) -> Result<String, RoleError> {
    let name = format!("{database}_{host}");
    if name.len() > ROLE_BYTES { Err(RoleError::TooLong(name)) } else { Ok(name) }
}

fn quoted(text: &str, quote: char) -> String {
    format!("{quote}{}{quote}", text.replace(quote, &format!("{quote}{quote}")))
}
