//! Amendments to the schemas: places where the published schema is kept smaller than the wire, because agents pay for every
//! byte of a tool's schema. Events are opaque objects there, and the answers of `loopback.respond` are described for one
//! approval only. The console reads these parts too, so they get their exact types here.

use plexus_core::MethodTypes;
use serde_json::{Map, Value, json};

/// Gives parts of named types their exact type.
pub(crate) fn amend(definitions: &mut Map<String, Value>) {
    if let Some(numbered) = definitions.get_mut("NumberedEvent") {
        put(numbered, "/properties/event", json!({"$ref": "#/$defs/Event"}));
    }
    // A tool result is a text, or Claude Code's content blocks.
    if let Some(variants) = definitions.get_mut("Event").and_then(|event| event["oneOf"].as_array_mut()) {
        for output in variants.iter_mut().filter_map(|variant| variant.pointer_mut("/properties/output")) {
            *output = Value::Bool(true);
        }
    }
}

/// Gives parts of a method's parameters and result their exact type.
pub(crate) fn amend_method(name: &str, types: &mut MethodTypes) {
    match name {
        "loopback.respond" => {
            put(&mut types.params, "/properties/decisions/items", json!({"$ref": "#/$defs/Answer"}));
            let answered = json!({"$ref": "#/$defs/Answered"});
            types.result = json!({"oneOf": [answered, {"type": "array", "items": answered}]});
        }
        // The console polls as a person, with `from_seq`, and never gets the short form for agents.
        "claudecode.poll" => types.result = types.result["anyOf"][0].take(),
        "claudecode.event" => {
            put(&mut types.result, "/oneOf/0/properties/event", json!({"$ref": "#/$defs/Event"}));
        }
        _ => {}
    }
}

fn put(schema: &mut Value, pointer: &str, with: Value) {
    if let Some(place) = schema.pointer_mut(pointer) {
        *place = with;
    }
}

#[cfg(test)]
mod tests {
    use crate::typescript;

    #[test]
    fn the_generated_file_contains_the_amendments() {
        let file = typescript();
        let event = "  event: Event;\n";
        assert!(
            file.contains(&format!("export interface NumberedEvent {{\n  seq: number;\n{event}")),
            "{file}"
        );
        assert!(file.contains("output: Json;"), "{file}");
        assert!(file.contains("decisions?: Answer[];"), "{file}");
        assert!(file.contains("result: Answered | Answered[];"), "{file}");
        assert!(
            file.contains("{ type: 'ok'; turn: number; seq: number; event: Event; at: number }"),
            "{file}"
        );
    }
}
