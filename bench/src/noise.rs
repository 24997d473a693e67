//! The noise of a result: by how much the largest of several runs may exceed the smallest one, on one machine with one version of Plexus. It is stated
//! by the kind of the result, before anything is measured. `agree` checks that runs keep it.

use crate::report::Goal;

/// The kind of a result, which decides its noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noise {
    /// Bytes, tokens and the size of a file. They depend on what is done, not on how fast.
    Count,
    /// Memory of a process. It includes what the allocator keeps.
    Memory,
    /// A ratio of two measurements of one run. The machine's speed affects both.
    Ratio,
    /// A time or a rate. The speed of shared hardware changes from minute to minute.
    Time,
    /// A 99th percentile or the longest of several tasks. A few extreme values decide.
    Tail,
}

impl Noise {
    /// The kind of a goal's result.
    pub(crate) fn of(goal: &Goal) -> Self {
        let is_tail = ["p99", "longest"].iter().any(|word| goal.what.contains(word));
        match goal.unit.as_str() {
            "%" => Self::Count,
            "MiB" if goal.what.contains("size") => Self::Count,
            "kB" | "MiB" => Self::Memory,
            _ if is_tail => Self::Tail,
            "×" => Self::Ratio,
            _ => Self::Time,
        }
    }

    /// The noise, as a part of the smallest result.
    pub(crate) fn part(self) -> f64 {
        match self {
            Self::Count => 0.05,
            Self::Memory => 0.15,
            Self::Ratio => 0.25,
            Self::Time => 0.5,
            Self::Tail => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Threshold;

    #[test]
    fn the_unit_and_the_name_tell_the_kind() {
        let of = |what: &str, unit: &str| {
            let (what, unit) = (what.to_owned(), unit.to_owned());
            Noise::of(&Goal { what, unit, value: 1.0, range: None, limit: Threshold::None })
        };
        assert_eq!(of("memory per session", "kB"), Noise::Memory);
        assert_eq!(of("size of the binary", "MiB"), Noise::Count);
        assert_eq!(of("tokens read", "%"), Noise::Count);
        assert_eq!(of("a, compared with b", "×"), Noise::Ratio);
        assert_eq!(of("64 open, p99", "ms"), Noise::Tail);
        assert_eq!(of("p99, 1000 open compared with 1", "×"), Noise::Tail);
        assert_eq!(of("longest task on the clock", "ms"), Noise::Tail);
        assert_eq!(of("1 open, p50", "ms"), Noise::Time);
        assert_eq!(of("over HTTP", "/s"), Noise::Time);
    }
}
