//! JSON Schema to TypeScript, for the part of JSON Schema that schemars writes for our types. It keeps the names of types and
//! leaves descriptions out, so that a reworded comment changes nothing in the generated file.

use std::collections::BTreeMap;

use plexus_protocol::schema::Definitions;
use serde_json::{Map, Value};

/// Objects and unions up to this many characters are written on one line.
const ONE_LINE: usize = 90;

/// Which side of the wire a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The hub reads it.
    Read,
    /// The hub writes it.
    Written,
}

/// The named types that the generated file declares.
#[derive(Debug)]
pub(crate) struct Declarations {
    definitions: Definitions,
    /// The declared types: name and body.
    declared: BTreeMap<String, String>,
}

impl Declarations {
    pub(crate) fn new(definitions: Definitions) -> Self {
        let mut declarations = Self { definitions, declared: BTreeMap::new() };
        let names: Vec<String> = declarations.definitions.written.keys().cloned().collect();
        for name in names {
            declarations.reference(&name, Side::Written);
        }
        declarations
    }

    /// The type of something that the hub reads.
    pub(crate) fn read_type(&mut self, schema: &Value, indent: usize) -> String {
        self.type_of(schema, Side::Read, indent)
    }

    /// The type of something that the hub writes.
    pub(crate) fn written_type(&mut self, schema: &Value, indent: usize) -> String {
        self.type_of(schema, Side::Written, indent)
    }

    /// All declarations, by name.
    pub(crate) fn write(&self) -> String {
        let mut out = String::new();
        for (name, body) in &self.declared {
            let declaration = if body.starts_with("{\n") && !is_compound(body) {
                format!("\nexport interface {name} {body}\n")
            } else {
                let gap = if body.starts_with('\n') { "" } else { " " };
                format!("\nexport type {name} ={gap}{body};\n")
            };
            out.push_str(&declaration);
        }
        out
    }

    /// The name under which a definition is declared. A type that the hub reads in another form than it writes has two names.
    fn reference(&mut self, name: &str, side: Side) -> String {
        let schema = match side {
            Side::Read => self.definitions.read.get(name).or_else(|| self.definitions.written.get(name)),
            Side::Written => self.definitions.written.get(name),
        };
        let schema = schema.cloned().unwrap_or(Value::Bool(true));
        if side == Side::Read && self.definitions.written.contains_key(name) {
            let body = self.body(&schema, side);
            if self.declared.get(name).is_none_or(|written| *written == body) {
                return name.to_owned();
            }
            let own_name = format!("{name}Given");
            self.declared.insert(own_name.clone(), body);
            return own_name;
        }
        if !self.declared.contains_key(name) {
            // Entered first, so that a type can refer to itself.
            self.declared.insert(name.to_owned(), String::new());
            let body = self.body(&schema, side);
            self.declared.insert(name.to_owned(), body);
        }
        name.to_owned()
    }

    /// The right-hand side of a declaration: an object is always written over several lines.
    fn body(&mut self, schema: &Value, side: Side) -> String {
        match schema {
            Value::Object(object) if object.contains_key("properties") && !object.contains_key("$ref") => {
                let fields = self.fields(object, side, 0);
                over_lines(&fields, 0)
            }
            schema => self.type_of(schema, side, 0),
        }
    }

    fn type_of(&mut self, schema: &Value, side: Side, indent: usize) -> String {
        let Value::Object(schema) = schema else { return "Json".to_owned() };
        let mut parts = Vec::new();
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            parts.push(self.reference(name.trim_start_matches("#/$defs/"), side));
        }
        if let Some(value) = schema.get("const") {
            parts.push(literal(value));
        } else if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            parts.push(union_at(values.iter().map(literal).collect(), indent + 1));
        } else if let Some(several) = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(*key)?.as_array()) {
            let members: Vec<String> =
                several.iter().map(|member| self.type_of(member, side, indent + 1)).collect();
            parts.push(union_at(members, indent + 1));
        } else if let Some(type_names) = schema.get("type") {
            parts.extend(self.plain_type(type_names, schema, side, indent));
        }
        if let Some(all) = schema.get("allOf").and_then(Value::as_array) {
            parts.extend(all.iter().map(|part| self.type_of(part, side, indent)).collect::<Vec<_>>());
        }
        match parts.as_slice() {
            [] => "Json".to_owned(),
            [only] => only.clone(),
            several => several.iter().map(|part| in_parentheses(part)).collect::<Vec<_>>().join(" & "),
        }
    }

    /// The type of a schema with `type`; none for a bare object beside a reference, which adds nothing.
    fn plain_type(
        &mut self,
        names: &Value,
        schema: &Map<String, Value>,
        side: Side,
        indent: usize,
    ) -> Option<String> {
        let names: Vec<&str> = match names {
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            name => name.as_str().into_iter().collect(),
        };
        if names == ["object"] && schema.contains_key("$ref") && !schema.contains_key("properties") {
            return None;
        }
        let members = names.into_iter().map(|name| match name {
            "string" => "string".to_owned(),
            "integer" | "number" => "number".to_owned(),
            "boolean" => "boolean".to_owned(),
            "null" => "null".to_owned(),
            "array" => {
                let item =
                    schema.get("items").map_or("Json".to_owned(), |items| self.type_of(items, side, indent));
                format!("{}[]", in_parentheses(&item))
            }
            _ => self.object(schema, side, indent),
        });
        Some(union(members.collect()))
    }

    fn object(&mut self, schema: &Map<String, Value>, side: Side, indent: usize) -> String {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return match schema.get("additionalProperties") {
                Some(values @ Value::Object(_)) => {
                    format!("{{ [name: string]: {} }}", self.type_of(values, side, indent))
                }
                _ => "Fields".to_owned(),
            };
        };
        if properties.is_empty() {
            return "Record<string, never>".to_owned();
        }
        let fields = self.fields(schema, side, indent);
        let line = format!("{{ {} }}", fields.join("; "));
        if line.len() <= ONE_LINE && !line.contains('\n') { line } else { over_lines(&fields, indent) }
    }

    /// `name: type` of each property.
    fn fields(&mut self, schema: &Map<String, Value>, side: Side, indent: usize) -> Vec<String> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let field = |(name, property): (&String, &Value)| {
            let written = self.type_of(property, side, indent + 1);
            if required.iter().any(|one| one == name) {
                return format!("{name}: {written}");
            }
            // `Option` fields are left out, never null.
            format!("{name}?: {}", written.strip_suffix(" | null").unwrap_or(&written))
        };
        properties.into_iter().flatten().map(field).collect()
    }
}

fn over_lines(fields: &[String], indent: usize) -> String {
    let margin = "  ".repeat(indent);
    let lines: String = fields.iter().map(|field| format!("{margin}  {field};\n")).collect();
    format!("{{\n{lines}{margin}}}")
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        other => other.to_string(),
    }
}

/// The members joined, each once.
fn union(members: Vec<String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for member in members {
        if !distinct.contains(&member) {
            distinct.push(member);
        }
    }
    distinct.join(" | ")
}

/// A union on one line if it is short, else each member on a line of its own.
fn union_at(members: Vec<String>, indent: usize) -> String {
    let line = union(members.clone());
    if line.len() <= ONE_LINE && !line.contains('\n') || members.len() < 2 {
        return line;
    }
    let margin = "  ".repeat(indent);
    members.iter().map(|member| format!("\n{margin}| {member}")).collect()
}

/// A type as an operand: a union or an intersection gets parentheses.
fn in_parentheses(written: &str) -> String {
    if is_compound(written) { format!("({written})") } else { written.to_owned() }
}

/// Whether the type is a union or an intersection.
fn is_compound(written: &str) -> bool {
    let mut depth = 0_usize;
    for character in written.chars() {
        match character {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth = depth.saturating_sub(1),
            '|' | '&' if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn declarations(written: Value) -> Declarations {
        let Value::Object(written) = written else { panic!("not an object: {written}") };
        Declarations::new(Definitions { read: Map::new(), written })
    }

    fn written(schema: Value) -> String {
        declarations(json!({})).written_type(&schema, 0)
    }

    #[test]
    fn plain_types_and_lists_are_written() {
        assert_eq!(written(json!({"type": "integer"})), "number");
        assert_eq!(written(json!({"type": ["string", "null"]})), "string | null");
        assert_eq!(
            written(json!({"type": "array", "items": {"type": ["string", "null"]}})),
            "(string | null)[]"
        );
        assert_eq!(written(json!({"enum": ["a", "b's"]})), "'a' | 'b\\'s'");
        assert_eq!(written(json!(true)), "Json");
        assert_eq!(written(json!({"type": "object"})), "Fields");
        assert_eq!(
            written(json!({"type": "object", "additionalProperties": {"type": "string"}})),
            "{ [name: string]: string }"
        );
    }

    #[test]
    fn a_field_that_is_not_required_may_be_left_out() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]}}, "required": ["a"]});
        assert_eq!(written(schema), "{ a: string; b?: number }", "it is left out, not null");
    }

    #[test]
    fn variants_become_a_union() {
        let variant = |word: &str| json!({"type": "object", "properties": {"type": {"type": "string", "const": word}}, "required": ["type"]});
        let schema = json!({"oneOf": [variant("ok"), variant("gone")]});
        assert_eq!(written(schema), "{ type: 'ok' } | { type: 'gone' }");
    }

    #[test]
    fn a_long_declaration_is_split_over_several_lines() {
        let fields =
            |count: usize| (0..count).map(|at| (format!("a_long_field_{at}"), json!({"type": "string"})));
        let object = json!({"type": "object", "properties": fields(5).collect::<Map<_, _>>()});
        let lines = written(object.clone());
        assert!(lines.starts_with("{\n  a_long_field_0?: string;\n") && lines.ends_with(";\n}"), "{lines}");
        let union = written(json!({"oneOf": [object, {"type": "null"}]}));
        assert!(union.starts_with("\n  | {\n    a_long_field_0") && union.ends_with("\n  | null"), "{union}");
    }

    #[test]
    fn named_types_are_declared_once_and_may_refer_to_themselves() {
        let mut declarations = declarations(json!({
            "Tree": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}},
            "Status": {"type": "string", "enum": ["idle", "running"]},
        }));
        assert_eq!(declarations.written_type(&json!({"$ref": "#/$defs/Status"}), 0), "Status");
        let file = declarations.write();
        assert!(file.contains("export interface Tree {\n  children?: Tree[];\n}\n"), "{file}");
        assert!(file.contains("export type Status = 'idle' | 'running';\n"), "{file}");
    }

    #[test]
    fn a_type_with_different_request_and_response_forms_has_two_names() {
        let object = |required: Value| json!({"type": "object", "properties": {"why": {"type": "string"}}, "required": required});
        let Value::Object(read) = json!({"EscalationStep": object(json!([]))}) else { panic!() };
        let Value::Object(written) = json!({"EscalationStep": object(json!(["why"]))}) else { panic!() };
        let mut declarations = Declarations::new(Definitions { read, written });
        let reference = json!({"$ref": "#/$defs/EscalationStep"});
        assert_eq!(declarations.written_type(&reference, 0), "EscalationStep");
        assert_eq!(declarations.read_type(&reference, 0), "EscalationStepGiven");
    }
}
