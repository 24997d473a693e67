//! Finds the known word that is most similar to a misspelt one, for "did you mean". The caller writes the message.

/// The most similar known word, if it is similar enough to be a likely correction.
pub(crate) fn closest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known.into_iter().map(|word| (strsim::osa_distance(typed, word), word));
    let (_, word) = distances.filter(|(distance, word)| *distance <= word.len().div_ceil(3)).min()?;
    Some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_corrected_and_another_word_is_not() {
        let known = ["worker", "lead", "ls"];
        for (typed, meant) in [("wroker", "worker"), ("workr", "worker"), ("lss", "ls"), ("laed", "lead")] {
            assert_eq!(closest(typed, known), Some(meant), "{typed}");
        }
        assert_eq!(closest("reviewer", known), None);
        assert_eq!(closest("", []), None);
    }
}
