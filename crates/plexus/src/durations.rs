//! Durations as people type them: `90s`, `15m`, `1h`, `7d`, `2w`.

use crate::terminal::{age, now};

/// The number of seconds of a duration, for flags such as `--for`.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let invalid = || "expected a duration such as 90s, 15m, 1h, 7d or 2w".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(invalid)?;
    let unit: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(invalid()),
    };
    let number: u64 = number.parse().map_err(|_| invalid())?;
    number.checked_mul(unit).filter(|seconds| *seconds > 0).ok_or_else(invalid)
}

/// How long something is still valid.
pub(crate) fn left(expires_at: Option<u64>) -> String {
    match expires_at {
        None => "never".to_owned(),
        Some(end) if end <= now() => "now".to_owned(),
        Some(end) => format!("in {}", age(end - now())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_number_and_a_unit() {
        assert_eq!(
            ["90s", "15m", "1h", "7d", "2w"].map(|text| seconds(text).ok()),
            [Some(90), Some(900), Some(3600), Some(604_800), Some(1_209_600)]
        );
        for text in ["", "h", "1", "0s", "-1h", "1.5h", "1 h", "9999999999999999999w", "1µ"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
