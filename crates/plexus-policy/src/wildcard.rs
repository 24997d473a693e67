//! Text patterns in which `*` matches anything, for example in the name of a tool.

/// Whether a text consists of the segments, with any text between two of them.
pub(crate) fn matches(segments: &[impl AsRef<str>], text: &str) -> bool {
    let [first, middle @ .., last] = segments else {
        return segments.first().is_some_and(|only| only.as_ref() == text);
    };
    let Some(mut rest) = text.strip_prefix(first.as_ref()) else { return false };
    for segment in middle {
        let Some(at) = rest.find(segment.as_ref()) else { return false };
        rest = &rest[at + segment.as_ref().len()..];
    }
    rest.ends_with(last.as_ref())
}

/// Whether a name matches a pattern with `*`.
pub(crate) fn name_matches(pattern: &str, name: &str) -> bool {
    if !pattern.contains('*') {
        return pattern == name;
    }
    let segments: Vec<&str> = pattern.split('*').collect();
    matches(&segments, name)
}
