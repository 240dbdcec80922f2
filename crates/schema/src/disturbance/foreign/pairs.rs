//! Lines of start and duration in ns, as netgauge's pattern `noise` writes them and LogGOPSim's `--noise-trace` reads them.

use super::{Noise, shown, wrong};
use crate::error::DescriptionError;

/// Larger times in ns are no whole number of 64 bits.
const LARGEST_NS: f64 = 1.8e19;

/// Whether a comment says that lines hold cycles of fixed work or time instead.
pub(super) fn is_of_quanta(comment: &str) -> bool {
    comment.starts_with("Fixed Work Quantum") || comment.starts_with("Fixed Time Quantum")
}

/// Returns the two numbers of a line.
pub(super) fn numbers(line: &str) -> Option<[f64; 2]> {
    let mut words = line.split_whitespace().map(|word| word.parse::<f64>().ok());
    match (words.next(), words.next(), words.next()) {
        (Some(Some(start)), Some(Some(duration)), None) => Some([start, duration]),
        _ => None,
    }
}

/// Reads all lines.
pub(super) fn read(text: &str) -> Result<Noise, DescriptionError> {
    let mut noise = Noise::default();
    let cause = noise.cause("noise", 1)?;
    noise.saw(0, 0, 0);
    let mut before = 0.0;
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
        if let Some(comment) = line.strip_prefix('#') {
            if is_of_quanta(comment.trim_start()) {
                let sentence = "is netgauge's fixed quantum benchmark, whose lines are cycles and no intervals; \
                                measure with its method selfish";
                return Err(wrong(at, sentence));
            }
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let Some([start, duration]) = numbers(line) else {
            return Err(wrong(at, format!("is {:?}; it must be a start and a duration, both in ns", shown(line))));
        };
        for (name, value) in [("start", start), ("duration", duration)] {
            if !(0.0..LARGEST_NS).contains(&value) {
                return Err(wrong(at, format!("has the {name} {value}; it must be 0 to {LARGEST_NS:e} ns")));
            }
        }
        if start < before {
            let sentence =
                format!("starts at {start} ns, before the line above it, {before} ns; sort the lines by start");
            return Err(wrong(at, sentence));
        }
        before = start;
        noise.add(at, 0, start.round() as u64, duration.round() as u64, cause)?;
    }
    Ok(noise)
}

#[cfg(test)]
mod tests {
    use crate::disturbance::{Disturbance, RecordedInterval, Source};

    /// Made as netgauge's `write_results_selfish` prints.
    const SELFISH: &str = "# Selfish Benchmark\n# Minimal cycle length [ns]: 23.100000 \n# Threshold: [% minimal cycle length]: 900 \n# \n\
         # Time [ns]\tselfish duration [ns]\n0.00\t1200.40\n500000.00\t800.00\n# CPU overhead due to noise: 0.40%\n";

    fn error(text: &str) -> String {
        Disturbance::from_toml(text.as_bytes(), "n.txt").expect_err("it is wrong").to_string()
    }

    #[test]
    fn what_netgauge_writes_is_one_recorded_cpu() {
        let read = Disturbance::from_toml(SELFISH.as_bytes(), "here/n.txt").expect("a recording");
        let [Source::Recorded(recorded)] = &read.sources[..] else { panic!("{read:?}") };
        assert_eq!((read.name.as_str(), recorded.causes.as_slice()), ("n.txt", ["noise".to_string()].as_slice()));
        assert_eq!(recorded.length_s, crate::units::PositiveSeconds::fixed(500_800e-9));
        let expected = vec![RecordedInterval(0.0, 1200e-9, 0), RecordedInterval(500_000e-9, 800e-9, 0)];
        assert_eq!(recorded.cpu[0].intervals, expected);
    }

    #[test]
    fn time_before_the_first_line_counts_as_in_loggopsim() {
        let read = Disturbance::from_toml(b"1000\t10\n3000\t20\n", "n").expect("a recording");
        let [Source::Recorded(recorded)] = &read.sources[..] else { panic!("{read:?}") };
        assert_eq!(recorded.cpu[0].intervals[0], RecordedInterval(1e-6, 1e-8, 0));
        assert_eq!(recorded.length_s, crate::units::PositiveSeconds::fixed(3.02e-6));
    }

    #[test]
    fn a_wrong_line_is_named() {
        assert_eq!(
            error("0\t10\nfive\t3\n"),
            "n.txt:2:1: is \"five\\t3\"; it must be a start and a duration, both in ns"
        );
        assert!(error("0 10\n100 -1\n").starts_with("n.txt:2:1: has the duration -1; it must be 0 to"));
        assert!(error("0 10\n90 nan\n").starts_with("n.txt:2:1: has the duration NaN"));
        assert!(error("0 10\n90 1\n80 1\n").contains("n.txt:3:1: starts at 80 ns, before the line above it, 90 ns"));
        assert!(error("0 0\n90 0\n").contains("has no noise"));
        assert!(error("1.7e19 1.7e19\n").starts_with("n.txt:1:1: ends after the largest time"));
        let quanta = error("# Fixed Work Quantum Benchmark\n# cycle number    duration [us]\n0             12\n");
        assert!(quanta.starts_with("n.txt:1:1: is netgauge's fixed quantum benchmark"), "{quanta}");
    }

    #[test]
    fn noise_that_leaves_nothing_is_refused() {
        assert!(error("0 1000\n1000 1000\n2000 1000\n").contains("part of a processor"));
    }
}
