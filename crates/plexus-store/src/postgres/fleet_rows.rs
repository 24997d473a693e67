//! The rows of the tables that hubs share, as values. Other hubs have written them, so a value that cannot be read, or is nested so deeply that it would
//! exhaust the stack, is an error.

use plexus_protocol::{CommandId, HostName};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_postgres::{Error, Row};

use super::errors::describe;
use crate::StoreError;
use crate::fleet::{Capacity, CommandRow, CommandState, HostRow, HostState};

/// How deeply a value of another hub may be nested. The stack of a thread has room for more.
const MAX_NESTING: usize = 1_000;

pub(super) fn command_id(row: &Row) -> Result<CommandId, StoreError> {
    text(row, "id")?.parse().map_err(|error| StoreError::Unusable(format!("a row cannot be read: {error}")))
}

pub(super) fn command_state(row: &Row) -> Result<CommandState, StoreError> {
    let reply: Option<&str> = row.try_get("reply").map_err(|error| unreadable(&error))?;
    let taken: bool = row.try_get("taken").map_err(|error| unreadable(&error))?;
    Ok(match (reply, taken) {
        // One reply that cannot be read must not hide the others. The caller gets an error.
        (Some(reply), _) => CommandState::Replied(parse(reply).unwrap_or_default()),
        (None, true) => CommandState::Taken,
        (None, false) => CommandState::Sent,
    })
}

pub(super) fn host_row(row: &Row) -> Result<HostRow, StoreError> {
    let silent: i64 = row.try_get("silent_ms").map_err(|error| unreadable(&error))?;
    Ok(HostRow {
        name: host_name(row, "name")?,
        epoch: number(row, "epoch")?,
        state: host_state(row)?,
        version: text(row, "version")?.to_owned(),
        silent_ms: u64::try_from(silent).ok(),
        capacity: Capacity { labels: json(row, "labels")?, slots: optional_number(row, "slots")? },
    })
}

pub(super) fn command_row(row: &Row) -> Result<CommandRow, StoreError> {
    let flag = |column: &str| row.try_get::<_, bool>(column).map_err(|error| unreadable(&error));
    Ok(CommandRow {
        id: command_id(row)?,
        origin: host_name(row, "origin")?,
        caller: json(row, "caller")?,
        method: text(row, "method")?.to_owned(),
        params: json(row, "params")?,
        expired: flag("expired")?,
        taken_before: flag("taken_before")?,
    })
}

fn host_name(row: &Row, column: &str) -> Result<HostName, StoreError> {
    HostName::try_from(text(row, column)?.to_owned()).map_err(StoreError::Unusable)
}

pub(super) fn host_state(row: &Row) -> Result<HostState, StoreError> {
    let state = Value::from(text(row, "state")?);
    serde_json::from_value(state)
        .map_err(|error| StoreError::Unusable(format!("a row cannot be read: {error}")))
}

pub(super) fn number(row: &Row, column: &str) -> Result<u64, StoreError> {
    let number: i64 = row.try_get(column).map_err(|error| unreadable(&error))?;
    u64::try_from(number).map_err(|error| StoreError::Unusable(format!("{column}: {error}")))
}

pub(super) fn optional_number(row: &Row, column: &str) -> Result<Option<u64>, StoreError> {
    let found: Option<i64> = row.try_get(column).map_err(|error| unreadable(&error))?;
    found.map(|_| number(row, column)).transpose()
}

pub(super) fn text<'a>(row: &'a Row, column: &str) -> Result<&'a str, StoreError> {
    row.try_get(column).map_err(|error| unreadable(&error))
}

pub(super) fn json<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T, StoreError> {
    parse(text(row, column)?)
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    if nesting(text) > MAX_NESTING {
        return Err(StoreError::Unusable("a row cannot be read: it is nested too deeply".to_owned()));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    json.disable_recursion_limit();
    T::deserialize(&mut json).map_err(|error| StoreError::Unusable(format!("a row cannot be read: {error}")))
}

/// How deeply arrays and objects are nested in a JSON text.
fn nesting(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn unreadable(error: &Error) -> StoreError {
    StoreError::Unusable(format!("a row cannot be read: {}", describe(error)))
}
