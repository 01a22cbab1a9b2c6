//! Times for people: RFC 3339 in UTC with the distance from now beside it.

use crate::offset::Timestamp;

/// The machine's clock.
pub fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// `2026-11-30T10:00:00.123Z (5 min ago)`.
pub fn with_distance(time: Timestamp, now: Timestamp) -> String {
    format!("{time} ({})", distance(time, now))
}

/// How far `time` is from `now`, in its largest whole unit: `5 min ago`, `in 2 h`, `now`.
pub fn distance(time: Timestamp, now: Timestamp) -> String {
    let seconds = (now.millis() - time.millis()) / 1_000;
    let span = match seconds.unsigned_abs() {
        0 => return "now".to_owned(),
        s @ 1..=119 => format!("{s} s"),
        s @ 120..=7_199 => format!("{} min", s / 60),
        s @ 7_200..=172_799 => format!("{} h", s / 3_600),
        s => format!("{} d", s / 86_400),
    };
    if seconds > 0 { format!("{span} ago") } else { format!("in {span}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_name_their_largest_unit() {
        let now = Timestamp::from_millis(2_000_000_000_000);
        let ago = |seconds: i64| distance(Timestamp::from_millis(now.millis() - seconds * 1_000), now);
        let told: Vec<_> = [0, 1, 119, 120, 7_199, 7_200, 172_800, -90, -7_200].into_iter().map(ago).collect();
        assert_eq!(
            told,
            ["now", "1 s ago", "119 s ago", "2 min ago", "119 min ago", "2 h ago", "2 d ago", "in 90 s", "in 2 h"]
        );
    }
}
