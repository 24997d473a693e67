//! Finds the known word that is most similar to a misspelt one, for "did you mean". The caller writes the message.

/// The most similar known word, if it is similar enough to be a likely correction.
pub(crate) fn closest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known.into_iter().map(|word| (strsim::osa_distance(typed, word), word));
    let (_, word) = distances.filter(|(distance, word)| *distance <= word.len().div_ceil(3)).min()?;
    Some(word)
}

/// The most similar known path: the parts at its end are each equal to a typed part or a likely correction of it.
pub(crate) fn closest_path<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let parts: Vec<&str> = typed.split('/').collect();
    let distance = |path: &str| -> Option<usize> {
        let path: Vec<&str> = path.split('/').collect();
        let end = path.get(path.len().checked_sub(parts.len())?..)?;
        let pairs = || parts.iter().zip(end);
        let similar = pairs().all(|(typed, part)| closest(typed, [*part]).is_some());
        similar.then(|| pairs().map(|(typed, part)| strsim::osa_distance(typed, part)).sum())
    };
    known.into_iter().filter_map(|path| Some((distance(path)?, path))).min().map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_path_is_corrected() {
        let known = ["lead/worker", "other/worker", "lead", "worker", "lead/sub/worker"];
        for (typed, meant) in [
            ("lead/workr", "lead/worker"),
            ("oter/worker", "other/worker"),
            ("laed/wroker", "lead/worker"),
            ("sub/workr", "lead/sub/worker"),
        ] {
            assert_eq!(closest_path(typed, known), Some(meant), "{typed}");
        }
        assert_eq!(closest_path("lead/reviewer", known), None);
        assert_eq!(closest_path("wroker", ["worker", "lead"]), Some("worker"));
    }

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
