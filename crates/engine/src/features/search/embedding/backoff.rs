//! The delay before a failed job is tried again.

const MINUTE: i64 = 60_000_000;
/// From half a minute to an hour, then every hour.
const STEPS: [i64; 6] = [MINUTE / 2, 2 * MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, 60 * MINUTE];
/// Random share of a delay, so that jobs that failed together are not retried together.
const JITTER: f64 = 0.2;

/// Returns the microseconds to wait after a failure, given the number of earlier failures. `jitter` is from -1 to 1.
pub fn wait(failures_before: u32, jitter: f64) -> i64 {
    let step = STEPS[(failures_before as usize).min(STEPS.len() - 1)];
    #[expect(clippy::cast_possible_truncation, reason = "a share of an hour in microseconds")]
    let drawn = (step as f64 * JITTER * jitter.clamp(-1.0, 1.0)) as i64;
    step + drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_an_hour_and_stay_there() {
        let minutes: Vec<_> = (0..8).map(|n| wait(n, 0.0) as f64 / MINUTE as f64).collect();
        assert_eq!(minutes, [0.5, 2.0, 5.0, 15.0, 30.0, 60.0, 60.0, 60.0]);
        assert_eq!(wait(u32::MAX, 0.0), 60 * MINUTE);
    }

    #[test]
    fn jitter_is_a_fifth_either_way() {
        assert_eq!((wait(1, -1.0), wait(1, 1.0)), (96_000_000, 144_000_000));
        assert_eq!(wait(1, 7.0), wait(1, 1.0), "never more");
    }
}
