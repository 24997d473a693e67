//! The published JSON schemas: small, and without the boolean subschemas that make older versions of Claude
//! Code drop every tool of a server.

use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value};

/// The published schema of `T`: inlined, trimmed, and without boolean subschemas.
pub fn of<T: JsonSchema>() -> Map<String, Value> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    trim(&mut schema);
    match schema {
        Value::Object(mut object) => {
            // The method has a summary of its own.
            object.remove("description");
            object
        }
        _ => Map::new(),
    }
}

/// Collects schemas in which every type keeps its name, as a generator of client code needs them. They are exact, unlike the
/// published ones: a parameter is described as the hub reads it, a result as the hub writes it.
#[derive(Debug)]
pub struct NamedSchemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

impl Default for NamedSchemas {
    fn default() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.meta_schema = None;
        let written = settings.clone().for_serialize().into_generator();
        Self { read: settings.for_deserialize().into_generator(), written }
    }
}

impl NamedSchemas {
    /// The schema of a type that the hub reads. It refers to other types by name.
    pub fn read<T: JsonSchema>(&mut self) -> Value {
        T::json_schema(&mut self.read).to_value()
    }

    /// The schema of a type that the hub writes. It refers to other types by name.
    pub fn written<T: JsonSchema>(&mut self) -> Value {
        T::json_schema(&mut self.written).to_value()
    }

    /// Adds a type that the hub writes to the definitions.
    pub fn define<T: JsonSchema>(&mut self) {
        self.written.subschema_for::<T>();
    }

    /// Adds a type that the hub reads to the definitions.
    pub fn define_read<T: JsonSchema>(&mut self) {
        self.read.subschema_for::<T>();
    }

    /// The referenced types, by name: the types that the hub reads, then the types that it writes.
    pub fn into_definitions(mut self) -> Definitions {
        Definitions { read: self.read.take_definitions(true), written: self.written.take_definitions(true) }
    }
}

/// Named types and their schemas.
#[derive(Debug)]
pub struct Definitions {
    /// The types that the hub reads.
    pub read: Map<String, Value>,
    /// The types that the hub writes.
    pub written: Map<String, Value>,
}

/// Removes what a caller does not need for a call: titles, number formats, lower bounds of 0, default nulls, and booleans
/// in the place of schemas.
fn trim(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    object.remove("title");
    object.remove("format");
    if object.get("minimum").is_some_and(|minimum| minimum == 0) {
        object.remove("minimum");
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    if object.get("additionalProperties").is_some_and(Value::is_boolean) {
        object.remove("additionalProperties");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        // schemars writes `null` for `Option`. Omitting the field has the same meaning in fewer bytes.
        types.retain(|t| t != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    collapse_nullable(object);
    for (key, value) in object.iter_mut() {
        match key.as_str() {
            "properties" | "$defs" => {
                if let Value::Object(named) = value {
                    named.values_mut().for_each(schema_or_empty);
                }
            }
            "items" | "additionalProperties" | "not" => schema_or_empty(value),
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                if let Value::Array(several) = value {
                    several.iter_mut().for_each(schema_or_empty);
                }
            }
            _ => {}
        }
    }
}

fn schema_or_empty(schema: &mut Value) {
    if schema.is_boolean() {
        *schema = Value::Object(Map::new());
    }
    trim(schema);
}

/// `anyOf: [X, null]` is the same as an optional `X`.
fn collapse_nullable(object: &mut Map<String, Value>) {
    let Some(Value::Array(several)) = object.get_mut("anyOf") else { return };
    several.retain(|schema| schema.get("type").is_none_or(|t| t != "null"));
    if let [Value::Object(only)] = several.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{claudecode, loopback};

    fn assert_no_boolean_subschema(path: &str, schema: &Value) {
        assert!(!schema.is_boolean(), "boolean subschema at {path}");
        let Value::Object(object) = schema else { return };
        for (key, value) in object {
            match (key.as_str(), value) {
                ("properties", Value::Object(named)) => {
                    for (name, value) in named {
                        assert_no_boolean_subschema(&format!("{path}.{name}"), value);
                    }
                }
                ("items" | "additionalProperties", value) => {
                    assert_no_boolean_subschema(&format!("{path}/{key}"), value);
                }
                ("anyOf" | "oneOf" | "allOf", Value::Array(several)) => {
                    several.iter().for_each(|s| assert_no_boolean_subschema(path, s));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn published_schemas_hold_no_boolean_subschema() {
        for schema in [
            of::<claudecode::CreateParams>(),
            of::<claudecode::PollResult>(),
            of::<loopback::PermitParams>(),
            of::<loopback::RespondParams>(),
            of::<loopback::WaitResult>(),
        ] {
            assert_no_boolean_subschema("$", &Value::Object(schema));
        }
    }

    #[test]
    fn the_schema_of_an_optional_field_is_that_of_its_value() {
        let schema = Value::Object(of::<loopback::WaitParams>());
        assert_eq!(schema["properties"]["timeout_ms"]["type"], "integer");
    }
}
