//! What messages for people have in common.

use std::fmt::Display;

/// Things that a sentence names before it says how many more there are.
pub const NAMED: usize = 5;

/// The first `shown` things, and how many more there are: `a, b, and 3 more`.
pub fn few(things: impl IntoIterator<Item: Display>, shown: usize, separator: &str) -> String {
    let mut things = things.into_iter();
    let named: Vec<String> = things.by_ref().take(shown).map(|thing| thing.to_string()).collect();
    match things.count() {
        0 => named.join(separator),
        more => format!("{}{separator}and {more} more", named.join(separator)),
    }
}

#[cfg(test)]
mod tests {
    use super::few;

    #[test]
    fn more_are_counted_from_the_first_that_is_not_shown() {
        assert_eq!(few([1, 2], 2, ", "), "1, 2");
        assert_eq!(few([1, 2, 3, 4], 2, ", "), "1, 2, and 2 more");
        assert_eq!(few([""; 0], 2, ", "), "");
    }
}
