//! Extracts a skeleton from a message that is too large to build as a tree.
//!
//! A [`Shape`] names the objects and lists of a message to descend into; everything else is skipped while streaming.
//! The result has the form of the message and a bounded size: it holds short scalars, a marker for each omitted text,
//! and no bulky content.

use std::cell::Cell;
use std::fmt;
use std::io::Read;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::Object;
use crate::bounded_json::BoundedJson;

/// The longest string to keep, in bytes.
const MAX_SCALAR: usize = 1024;

/// The maximum number of fields to keep of one object, besides those its shape names.
const MAX_FIELDS: usize = 64;

/// The approximate maximum size of a whole skeleton, in bytes.
const MAX_SKELETON: usize = 1024 * 1024;

/// The cost of one kept value in addition to its text.
const VALUE_COST: usize = 64;

/// The marker for an omitted text.
pub(crate) const LEFT_OUT: &str = "[omitted: too large]";

/// The parts of a value to keep.
pub(crate) enum Shape {
    /// Numbers, booleans and short strings. A longer string, an object or a list is dropped.
    Scalar,
    /// Like a scalar, but a value that is too large leaves a marker.
    Text,
    /// An object: the named fields by their shapes, all others as scalars.
    Object(&'static [(&'static str, Shape)]),
    /// A list of values of one shape. A string in its place is treated as a text.
    List(&'static Shape),
}

/// Reads an object from JSON text and keeps the parts in `shape`. Skipped parts cost neither time nor memory. `Err`
/// carries the beginning of a text that is not an object or not JSON.
pub(crate) fn read(reader: impl Read, shape: &Shape) -> Result<Object, Vec<u8>> {
    // A truncated string is one character longer than the limit, which marks it as too long.
    let mut bounded = BoundedJson::new(reader, MAX_SCALAR + 1);
    let mut json = serde_json::Deserializer::from_reader(&mut bounded);
    let room = Cell::new(MAX_SKELETON);
    let kept = Keep { shape, room: &room }.deserialize(&mut json);
    match kept.and_then(|kept| json.end().map(|()| kept)) {
        Ok(Some(Value::Object(object))) => Ok(object),
        _ => Err(bounded.head()),
    }
}

#[derive(Clone, Copy)]
struct Keep<'a> {
    shape: &'a Shape,
    /// The remaining size of this skeleton.
    room: &'a Cell<usize>,
}

impl Keep<'_> {
    fn fits(&self, bytes: usize) -> bool {
        let cost = bytes + VALUE_COST;
        let fits = cost <= self.room.get();
        if fits {
            self.room.set(self.room.get() - cost);
        }
        fits
    }

    fn scalar(&self, value: impl Into<Value>) -> Option<Value> {
        self.fits(0).then(|| value.into())
    }

    /// The replacement for a value that is too large.
    fn too_large(&self) -> Option<Value> {
        let marked = matches!(self.shape, Shape::Text | Shape::List(_));
        (marked && self.fits(LEFT_OUT.len())).then(|| LEFT_OUT.into())
    }
}

impl<'de> DeserializeSeed<'de> for Keep<'_> {
    /// `None` for an omitted value.
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keep<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(self.scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(self.scalar(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(self.scalar(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(self.scalar(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(self.scalar(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        let kept = value.len() <= MAX_SCALAR && self.fits(value.len());
        Ok(if kept { Some(value.into()) } else { self.too_large() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let Shape::List(shape) = self.shape else {
            IgnoredAny.visit_seq(list)?;
            return Ok(self.too_large());
        };
        let mut kept = Vec::new();
        while let Some(item) = list.next_element_seed(Keep { shape, ..self })? {
            kept.extend(item);
        }
        Ok(Some(Value::Array(kept)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Shape::Object(fields) = self.shape else {
            IgnoredAny.visit_map(map)?;
            return Ok(self.too_large());
        };
        if !self.fits(0) {
            IgnoredAny.visit_map(map)?;
            return Ok(None);
        }
        let mut kept = Object::new();
        while let Some(key) = map.next_key::<String>()? {
            let named = fields.iter().find(|(name, _)| *name == key).map(|(_, shape)| shape);
            let known = named.is_some() || kept.len() < MAX_FIELDS || kept.contains_key(&key);
            if !known || key.len() > MAX_SCALAR || !self.fits(key.len()) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let shape = named.unwrap_or(&Shape::Scalar);
            match map.next_value_seed(Keep { shape, ..self })? {
                Some(value) => kept.insert(key, value),
                // If a key occurs twice, the last value counts, even if it is omitted.
                None => kept.remove(&key),
            };
        }
        Ok(Some(Value::Object(kept)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    static SHAPE: Shape = Shape::Object(&[("list", Shape::List(&Shape::Object(&[("text", Shape::Text)])))]);

    fn kept(text: &str) -> Value {
        Value::Object(read(text.as_bytes(), &SHAPE).unwrap())
    }

    #[test]
    fn scalars_and_named_parts_are_kept_and_the_rest_is_skipped() {
        let text = r#"{"id":"x","n":1,"deep":{"a":[1]},"list":[{"text":"t","no":[{}]},7,{"text":{"a":1}}]}"#;
        let expected = json!({"id":"x","n":1,"list":[{"text":"t"},7,{"text":LEFT_OUT}]});
        assert_eq!(kept(text), expected);
    }

    #[test]
    fn a_long_text_leaves_a_marker_and_a_long_scalar_nothing() {
        let long = "漢".repeat(500);
        let text = format!(r#"{{"id":"{long}","list":[{{"text":"{long}"}}],"{long}":1}}"#);
        assert_eq!(kept(&text), json!({"list":[{"text":LEFT_OUT}]}));
    }

    #[test]
    fn an_escaped_string_is_measured_by_its_decoded_length() {
        let kept_id = r"\u0041".repeat(MAX_SCALAR);
        assert_eq!(kept(&format!(r#"{{"id":"{kept_id}"}}"#)), json!({"id":"A".repeat(MAX_SCALAR)}));
        assert_eq!(kept(&format!(r#"{{"id":"{kept_id}\u0041"}}"#)), json!({}));
    }

    #[test]
    fn the_total_size_is_bounded() {
        let text = format!(r#"{{"list":[{}]}}"#, vec![r#"{"a":"bbbbbbbbbbbbbbbb"}"#; 200_000].join(","));
        assert!(text.len() > 4 * MAX_SKELETON);
        assert!(kept(&text).to_string().len() < MAX_SKELETON);
    }

    #[test]
    fn nesting_that_serde_json_would_refuse_is_skipped() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert_eq!(kept(&format!(r#"{{"a":{deep},"id":"x"}}"#)), json!({"id":"x"}));
    }

    #[test]
    fn text_that_is_not_a_json_object_returns_its_start() {
        for text in ["[1]", "{", r#"{"a":1} x"#, "", r#"{"a":"#] {
            assert_eq!(read(text.as_bytes(), &SHAPE).unwrap_err(), text.as_bytes());
        }
    }
}
