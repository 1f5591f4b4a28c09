//! A share of callers.

#[cfg(test)]
mod tests;

/// The unit of a share: a hundred-millionth.
const WHOLE: u128 = 100_000_000;

/// A share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedShare(u128);

impl RefusedShare {
    /// Parses `0.1%` or `0.001`.
    ///
    /// # Errors
    /// The text is not a share.
    pub fn parse(text: &str) -> Result<RefusedShare, String> {
        let wrong = || {
            let found = crate::text::plain(text);
            format!("found `--refuse {found}`, allowed: a share such as 0.1%, 0 … 100%")
        };
        let (number, one) = match text.strip_suffix('%') {
            Some(number) => (number.trim_end(), WHOLE / 100),
            None => (text, WHOLE),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        let fits =
            is_number(whole) && is_number(fraction) && !number.is_empty() && number.len() < 12;
        let digits = [whole, fraction].concat();
        let parts = digits.parse::<u128>().ok().filter(|_| fits).ok_or_else(wrong)?;
        let share = parts * one / 10u128.pow(fraction.len() as u32);
        if share <= WHOLE { Ok(RefusedShare(share)) } else { Err(wrong()) }
    }

    /// The share of a count, rounded down.
    pub fn of(self, count: usize) -> usize {
        (count as u128 * self.0 / WHOLE) as usize
    }
}

/// The lowest limit that refuses at most a share of callers. `most` has the highest count of each
/// in ascending order.
pub fn limit(most: &[u32], share: RefusedShare) -> u64 {
    let refused = share.of(most.len()).min(most.len().saturating_sub(1));
    most.iter().rev().nth(refused).copied().unwrap_or(1).into()
}

/// The quantile of callers in thousandths. `most` has the highest count of each in ascending order.
pub fn quantile(most: &[u32], thousandths: u64) -> u64 {
    let rank = (most.len() as u64 * thousandths).div_ceil(1000).max(1);
    most.get(rank as usize - 1).copied().unwrap_or_default().into()
}
