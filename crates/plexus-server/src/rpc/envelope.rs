//! The JSON-RPC 2.0 envelope of requests and responses. `error_code` has the codes of errors; the registry owns
//! the methods.

use plexus_protocol::{Error, ErrorKind};
use serde_json::{Map, Value, json};

use super::error_code::{INVALID_REQUEST, PARSE_ERROR, code};

/// The maximum number of calls in one batch. They run concurrently, and memory holds all their results.
const BATCH: usize = 100;

/// One call of an envelope.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// `None` for a notification, which gets no response.
    pub(crate) id: Option<Value>,
    pub(crate) method: String,
    pub(crate) params: Value,
}

/// One member of a request: a call, or the error response to an invalid call.
pub(crate) type Member = Result<Call, Value>;

/// A parsed request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Incoming {
    /// One call.
    One(Member),
    /// Several calls with one combined response.
    Batch(Vec<Member>),
}

impl Incoming {
    /// Parses an envelope. An invalid member carries its own error response.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        match serde_json::from_slice(bytes) {
            Err(error) => Self::One(Err(refusal(
                PARSE_ERROR,
                "parse_error",
                &format!("the body is not valid JSON: {error}"),
                Value::Null,
            ))),
            Ok(Value::Array(members)) if members.is_empty() => {
                Self::One(Err(invalid("a batch must have at least one call", Value::Null)))
            }
            Ok(Value::Array(members)) if members.len() > BATCH => {
                Self::One(Err(invalid(&format!("a batch can have at most {BATCH} calls"), Value::Null)))
            }
            Ok(Value::Array(members)) => Self::Batch(members.into_iter().map(member).collect()),
            Ok(value) => Self::One(member(value)),
        }
    }
}

fn member(value: Value) -> Member {
    let Value::Object(mut object) = value else {
        return Err(invalid("a call must be a JSON object", Value::Null));
    };
    let id = object.remove("id");
    if !matches!(id, None | Some(Value::Null | Value::String(_) | Value::Number(_))) {
        return Err(invalid("`id` must be a string or a number", Value::Null));
    }
    let answer_to = || id.clone().unwrap_or(Value::Null);
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid("`jsonrpc` must be \"2.0\"", answer_to()));
    }
    let Some(Value::String(method)) = object.remove("method") else {
        return Err(invalid("`method` must be the name of a method", answer_to()));
    };
    let params = object.remove("params").unwrap_or(Value::Null);
    if !matches!(params, Value::Null | Value::Object(_) | Value::Array(_)) {
        return Err(invalid("`params` must be an object", answer_to()));
    }
    Ok(Call { id, method, params })
}

/// The response to a call.
pub(crate) fn answer(id: Value, outcome: Result<Value, Error>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({
            "jsonrpc": "2.0",
            "id": id,
            "error": {"code": code(error.kind), "message": error.message, "data": error.to_object()},
        }),
    }
}

/// The error for a call that was waiting when the hub shut down.
pub(crate) fn hub_shut_down() -> Error {
    Error::new(ErrorKind::ShuttingDown, "the hub is shutting down; call again after it has restarted")
}

/// A notification that belongs to the call `id`.
pub(crate) fn notification(method: &str, id: &Value, params: Map<String, Value>) -> Value {
    let mut all = Map::with_capacity(params.len() + 1);
    all.insert("id".to_owned(), id.clone());
    all.extend(params);
    json!({"jsonrpc": "2.0", "method": method, "params": all})
}

fn invalid(message: &str, id: Value) -> Value {
    refusal(INVALID_REQUEST, "invalid_request", message, id)
}

fn refusal(code: i64, kind: &str, message: &str, id: Value) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": id,
        "error": {"code": code, "message": message, "data": {"type": kind, "message": message}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (i64, Value) {
        match Incoming::parse(text.as_bytes()) {
            Incoming::One(Err(answer)) => (answer["error"]["code"].as_i64().unwrap(), answer["id"].clone()),
            other => panic!("{text} was taken as {other:?}"),
        }
    }

    #[test]
    fn a_call_keeps_its_id_method_and_parameters() {
        let call = Incoming::parse(br#"{"jsonrpc":"2.0","id":"a","method":"x.y","params":{"b":1}}"#);
        let expected = Call { id: Some(json!("a")), method: "x.y".to_owned(), params: json!({"b": 1}) };
        assert_eq!(call, Incoming::One(Ok(expected)));
    }

    #[test]
    fn a_call_without_an_id_is_a_notification_and_one_with_null_is_not() {
        let id = |text: &str| match Incoming::parse(text.as_bytes()) {
            Incoming::One(Ok(call)) => call.id,
            other => panic!("{other:?}"),
        };
        assert_eq!(id(r#"{"jsonrpc":"2.0","method":"m"}"#), None);
        assert_eq!(id(r#"{"jsonrpc":"2.0","method":"m","id":null}"#), Some(Value::Null));
    }

    #[test]
    fn an_invalid_call_is_refused_with_the_right_code() {
        assert_eq!(refused("{"), (-32700, Value::Null));
        assert_eq!(refused(""), (-32700, Value::Null));
        assert_eq!(refused("[]"), (-32600, Value::Null));
        assert_eq!(refused("7"), (-32600, Value::Null));
        assert_eq!(refused(r#"{"jsonrpc":"1.0","id":3,"method":"m"}"#), (-32600, json!(3)));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":3}"#), (-32600, json!(3)));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#), (-32600, Value::Null));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":3,"method":"m","params":1}"#), (-32600, json!(3)));
    }

    #[test]
    fn valid_members_of_a_batch_are_served_beside_invalid_ones() {
        let Incoming::Batch(members) = Incoming::parse(br#"[{"jsonrpc":"2.0","id":1,"method":"m"},7]"#)
        else {
            panic!("not a batch");
        };
        assert!(members[0].is_ok());
        assert!(members[1].is_err());
        assert_eq!(refused(&json!(vec![7; BATCH + 1]).to_string()), (-32600, Value::Null));
    }

    #[test]
    fn each_failure_has_its_code_and_its_type() {
        let seen = |kind| {
            let answer = answer(json!(1), Err(Error::new(kind, "why").with("field", "f")));
            assert_eq!(answer["error"]["data"]["field"], "f");
            (
                answer["error"]["code"].as_i64().unwrap(),
                answer["error"]["data"]["type"].as_str().unwrap().to_owned(),
            )
        };
        assert_eq!(seen(ErrorKind::MethodNotFound), (-32601, "method_not_found".to_owned()));
        assert_eq!(seen(ErrorKind::UnknownField), (-32602, "unknown_field".to_owned()));
        assert_eq!(seen(ErrorKind::InvalidParams), (-32602, "invalid_params".to_owned()));
        assert_eq!(seen(ErrorKind::NotSupportedYet), (-32602, "not_supported_yet".to_owned()));
        assert_eq!(seen(ErrorKind::SessionNotFound), (-32000, "session_not_found".to_owned()));
        assert_eq!(seen(ErrorKind::Internal), (-32603, "internal".to_owned()));
    }
}
