//! Which transfers and which work of real agents count as observations.

/// Bytes that a real link accepts at once, whatever its speed. Smaller tasks do not measure it.
const LEAST_MEASURED: u64 = 1 << 20;

/// Bytes of a real transfer that count for measuring its link. 0: it does not count.
#[must_use]
pub fn measured_bytes(bytes: u64) -> u64 {
    if bytes >= LEAST_MEASURED { bytes } else { 0 }
}

/// Whether a task computed in one attempt measures the processor. `known`: whether its work is expressed in units that
/// the computation actually takes.
#[must_use]
pub fn measures_processor(known: bool, work: f64) -> bool {
    known && work > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_socket_takes_at_once_measures_no_link_and_a_command_no_processor() {
        assert_eq!((measured_bytes((1 << 20) - 1), measured_bytes(1 << 20)), (0, 1 << 20));
        assert!(measures_processor(true, 1.0) && !measures_processor(true, 0.0) && !measures_processor(false, 1.0));
    }
}
