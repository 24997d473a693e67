//! Tokens and digests: creates random tokens, hashes them for storage, and computes the digest that identifies a call.

use plexus_protocol::Object;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A new secret of 32 random bytes, in hex.
pub fn new_token() -> Result<String, getrandom::Error> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

/// The hash of a token; the store keeps only this.
pub fn token_hash(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}

/// The hash of a file's content.
pub fn content_hash(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

/// The digest of tool, input and working directory: two calls with the same digest do the same thing.
pub fn call_digest(tool_name: &str, input: &Object, cwd: &str) -> String {
    let mut hash = Sha256::new();
    for part in [tool_name, cwd] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    feed_object(&mut hash, input);
    hex(&hash.finalize())
}

// Objects are hashed in the order of their sorted keys, because the order in which a channel writes them has no
// meaning.
fn feed_object(hash: &mut Sha256, object: &Object) {
    let mut keys: Vec<&String> = object.keys().collect();
    keys.sort();
    hash.update([b'{']);
    hash.update((keys.len() as u64).to_le_bytes());
    for key in keys {
        feed_text(hash, key);
        feed(hash, &object[key]);
    }
}

fn feed(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Object(object) => feed_object(hash, object),
        Value::Array(items) => {
            hash.update([b'[']);
            hash.update((items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| feed(hash, item));
        }
        Value::String(text) => {
            hash.update([b'"']);
            feed_text(hash, text);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            hash.update([b'=']);
            feed_text(hash, &value.to_string());
        }
    }
}

fn feed_text(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text.as_bytes());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn digest(input: Value, cwd: &str) -> String {
        call_digest("Bash", input.as_object().expect("an object"), cwd)
    }

    #[test]
    fn a_digest_depends_only_on_the_call() {
        let one = digest(json!({"a": 1, "b": {"c": [1, "x"]}}), "/w");
        assert_eq!(one, digest(json!({"b": {"c": [1, "x"]}, "a": 1}), "/w"));
        assert_ne!(one, digest(json!({"a": 1, "b": {"c": ["1", "x"]}}), "/w"));
        assert_ne!(one, digest(json!({"a": 1, "b": {"c": [1, "x"]}}), "/v"));
    }

    #[test]
    fn tokens_are_long_and_differ() {
        let (a, b) = (new_token().expect("random"), new_token().expect("random"));
        assert_eq!(a.len(), 64);
        assert_ne!(a, b);
    }
}
