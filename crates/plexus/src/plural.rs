//! Counts with their noun, in the singular or the plural.

use std::fmt::Display;

/// The number and the noun that fits it, such as `1 line` or `2 lines`.
pub(crate) fn counted<N: Display + PartialEq + From<u8>>(count: N, one: &str, several: &str) -> String {
    let noun = if count == N::from(1) { one } else { several };
    format!("{count} {noun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        let shown: Vec<String> = (0_u64..3).map(|count| counted(count, "entry", "entries")).collect();
        assert_eq!(shown, ["0 entries", "1 entry", "2 entries"]);
    }
}
