//! Transmission time of a frame on a link.

use crosswind_schema::experiment::streams::Links;
use crosswind_schema::units::Quantity;

/// Fraction bits of a nanosecond in which transmission times are counted. On a fast link, rounding to whole nanoseconds
/// would change its rate.
const PARTS: u32 = 16;

/// The rate of all links. The fraction of a nanosecond left over is carried to the link's next frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Time of every frame if frames are padded to one length, otherwise 0.
    padded: u64,
    per_byte: f64,
}

impl Pace {
    pub fn new(links: &Links) -> Self {
        let per_byte = 1e3 / links.link_mb_per_s.get() * f64::from(1u32 << PARTS);
        let padded = if links.pad { (links.frame_bytes.get() as f64 * per_byte).round() as u64 } else { 0 };
        Self { padded, per_byte }
    }

    /// Returns the transmission time of a frame in units of 2^-[`PARTS`] ns.
    #[inline]
    pub fn parts(self, bytes: u32) -> u64 {
        if self.padded > 0 { self.padded } else { (f64::from(bytes) * self.per_byte).round() as u64 }
    }

    /// Returns the whole nanoseconds of a frame that follows others on a link, and updates the fraction carried over.
    #[inline]
    pub fn next(self, bytes: u32, carry: &mut u64) -> u64 {
        let parts = self.parts(bytes) + *carry;
        *carry = parts & ((1 << PARTS) - 1);
        parts >> PARTS
    }

    /// Returns the whole nanoseconds of a frame on its own.
    #[inline]
    pub fn alone(self, bytes: u32) -> u64 {
        self.parts(bytes) >> PARTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(links: &str) -> Pace {
        Pace::new(&serde_json::from_str(links).unwrap())
    }

    #[test]
    fn frames_of_less_than_a_nanosecond_add_up_to_the_links_rate() {
        // 400 Gb/s: 20.48 ns for 1 KiB, 1.28 ns for 64 bytes.
        for (pad, bytes, expected) in [(true, 64, 20_480_000), (false, 64, 1_280_000), (false, 1024, 20_480_000)] {
            let pace = pace(&format!(r#"{{"link_mb_per_s": 50000.0, "pad": {pad}}}"#));
            let mut carry = 0;
            let total: u64 = (0..1_000_000).map(|_| pace.next(bytes, &mut carry)).sum();
            assert!(total.abs_diff(expected) <= 16, "{total} of {expected}");
            assert!(pace.alone(bytes) * 1_000_000 <= total);
        }
    }

    #[test]
    fn the_slowest_link_and_the_longest_frame_do_not_overflow() {
        let pace = pace(r#"{"link_mb_per_s": 0.001, "frame_bytes": 16777216, "pad": true}"#);
        assert_eq!(pace.alone(1), 16_777_216_000_000);
    }
}
