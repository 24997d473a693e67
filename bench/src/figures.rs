//! Summarises durations as three percentiles.

use std::time::Duration;

/// The percentiles of some durations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) p50: Duration,
    pub(crate) p90: Duration,
    pub(crate) p99: Duration,
    pub(crate) count: usize,
}

impl Figures {
    pub(crate) fn of(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        let at = |percent: usize| percentile(&durations, percent);
        Self { p50: at(50), p90: at(90), p99: at(99), count: durations.len() }
    }

    /// The ratio of the medians.
    pub(crate) fn ratio_to(&self, other: &Self) -> f64 {
        self.p50.as_secs_f64() / other.p50.as_secs_f64()
    }
}

/// The value that this part of the values does not exceed, or zero if there are none.
pub(crate) fn percentile<T: Copy + Default>(sorted: &[T], percent: usize) -> T {
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_values() {
        let figures = Figures::of((1..=200).rev().map(Duration::from_millis).collect());
        assert_eq!([figures.p50, figures.p90, figures.p99].map(|d| d.as_millis()), [100, 180, 198]);
    }
}
