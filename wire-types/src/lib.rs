//! Generates `ui/src/wire.ts`, the console's TypeScript types, from the schemas of the methods and of the other messages that
//! the console reads. The file is checked in; a test fails when it differs from the schemas. How a schema becomes TypeScript
//! is in `typescript`, and where the console needs to know more than the published schemas say is in `amendments`.

mod amendments;
mod typescript;

use plexus_core::MethodTypes;
use plexus_protocol::schema::NamedSchemas;
use plexus_protocol::{ErrorKind, Event, console, loopback, stream};
use plexus_server::methods;
use serde_json::Value;

use crate::typescript::Declarations;

const HEADER: &str = "\
// Generated from the JSON schemas of `plexus-protocol` by `cargo xtask wire`. Do not edit.
// The documentation of each type and field is in that crate.

export type Json = null | boolean | number | string | Json[] | Fields;
export type Fields = { [name: string]: Json };
";

const FOOTER: &str = "
export type Method = keyof Methods;
export type Params<M extends Method> = Methods[M]['params'];
export type Result<M extends Method> = Methods[M]['result'];
";

/// The whole file.
#[must_use]
pub fn typescript() -> String {
    let mut schemas = NamedSchemas::default();
    let methods: Vec<(&str, MethodTypes)> =
        methods().all().map(|method| (method.name, method.types(&mut schemas))).collect();
    schemas.define::<Event>();
    schemas.define::<ErrorKind>();
    schemas.define_read::<loopback::Answer>();
    schemas.define::<loopback::Answered>();
    schemas.define::<stream::HelloFrame>();
    schemas.define::<stream::ApprovalFrame>();
    schemas.define::<stream::SessionFrame>();
    schemas.define::<stream::ErrorFrame>();
    schemas.define::<console::SignIn>();
    schemas.define::<console::SignedIn>();
    schemas.define::<console::Proof>();
    let mut definitions = schemas.into_definitions();
    amendments::amend(&mut definitions.written);

    let mut declarations = Declarations::new(definitions);
    let mut map = String::from("\nexport interface Methods {\n");
    for (name, mut types) in methods {
        amendments::amend_method(name, &mut types);
        let params = declarations.read_type(&optional(types.params), 2);
        let result = declarations.written_type(&types.result, 2);
        map.push_str(&format!("  '{name}': {{\n    params: {params};\n    result: {result};\n  }};\n"));
    }
    map.push_str("}\n");
    format!("{HEADER}{}{map}{FOOTER}", declarations.write())
}

/// A method without parameters takes an empty object; schemars calls that a null or an object without properties.
fn optional(params: Value) -> Value {
    if params.get("properties").is_none() && params.get("oneOf").is_none() {
        return serde_json::json!({"type": "object", "properties": {}, "additionalProperties": false});
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECKED_IN: &str = include_str!("../../ui/src/wire.ts");

    #[test]
    fn the_checked_in_types_are_those_of_the_schemas() {
        assert!(typescript() == CHECKED_IN, "ui/src/wire.ts is out of date: run `cargo xtask wire`");
    }

    #[test]
    fn every_method_has_its_types() {
        let file = typescript();
        for method in methods().all() {
            assert!(file.contains(&format!("\n  '{}': {{\n", method.name)), "{}", method.name);
        }
    }
}
