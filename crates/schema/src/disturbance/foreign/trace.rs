//! The text of a trace (`trace`, `trace_pipe`, or what `rtla osnoise` saves) by the Linux tracers `osnoise` and `hwlat`.
//!
//! Of `osnoise` the tracepoints are read: they say when each IRQ, softirq, NMI and thread began and its net duration. A
//! noise that none of them explains is the hardware's. The tracer's own lines have sums per period only.

use super::{Noise, shown, wrong};
use crate::error::DescriptionError;

/// A line of a trace.
#[derive(Debug, PartialEq)]
pub(super) struct Event<'a> {
    cpu: u32,
    at_ns: u64,
    what: &'a str,
}

/// Returns the event of a line such as `osnoise/8-961 [008] d.h. 5789.857532: irq_noise: ...`.
pub(super) fn event(line: &str) -> Option<Event<'_>> {
    // The name of a task may hold brackets itself.
    line.match_indices('[').find_map(|(at, _)| {
        let (cpu, rest) = line[at + 1..].split_once(']')?;
        if line[..at].trim().is_empty() || !cpu.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let cpu = cpu.parse().ok()?;
        let (head, what) = rest.split_once(": ")?;
        let at_ns = nanoseconds(head.split_whitespace().last()?)?;
        Some(Event { cpu, at_ns, what: what.trim() })
    })
}

/// Returns a time such as `5789.857529929` in ns.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let ns = format!("{fraction:0<9}").parse::<u64>().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// What a line says.
enum Content<'a> {
    /// An interval with its cause, ns.
    Noise {
        kind: &'a str,
        name: &'a str,
        start: u64,
        duration: u64,
    },
    /// A gap that `osnoise` saw, and how many interferences explain it.
    Gap {
        start: u64,
        duration: u64,
        interferences: u64,
    },
    /// A gap that `hwlat` saw.
    Hardware {
        start: u64,
        duration: u64,
    },
    /// Sums over a period of `osnoise`, which took this long.
    Period {
        runtime: u64,
    },
    Other,
}

/// Returns what an event says; `None`: it is of a kind that is read, and damaged.
fn content_of<'a>(event: &Event<'a>) -> Option<Content<'a>> {
    let what = event.what;
    if let Some(latency) = what.strip_prefix('#') {
        let Some((_, rest)) = latency.split_once("inner/outer(us):") else { return Some(Content::Other) };
        let mut words = rest.split_whitespace();
        let mut gaps = words.next()?.split('/');
        let longest = gaps.next()?.parse::<u64>().ok()?.max(gaps.next()?.parse().ok()?);
        let start = nanoseconds(words.find_map(|word| word.strip_prefix("ts:"))?)?;
        return Some(Content::Hardware { start, duration: longest.checked_mul(1000)? });
    }
    let Some((kind, rest)) = what.split_once(':') else {
        let mut words = what.split_whitespace().map(str::parse::<f64>);
        let runtime = words.next().and_then(Result::ok);
        let is_period = words.by_ref().take(7).filter(Result::is_ok).count() == 7;
        return Some(match runtime {
            Some(us) if is_period && (0.0..1e12).contains(&us) => Content::Period { runtime: (us * 1e3) as u64 },
            _ => Content::Other,
        });
    };
    let kind = match kind {
        "irq_noise" => "irq",
        "softirq_noise" => "softirq",
        "thread_noise" => "thread",
        "nmi_noise" => "nmi",
        "sample_threshold" => "gap",
        _ => return Some(Content::Other),
    };
    let at = rest.rfind("start ")?;
    let name = rest[..at].trim();
    let words: Vec<&str> = rest[at..].split_whitespace().collect();
    let ["start", start, "duration", duration, "ns", more @ ..] = &words[..] else { return None };
    let (start, duration) = (nanoseconds(start)?, duration.parse().ok()?);
    match (kind, more) {
        ("gap", [_, count]) => Some(Content::Gap { start, duration, interferences: count.parse().ok()? }),
        ("gap", _) => None,
        ("nmi", _) => Some(Content::Noise { kind, name: "", start, duration }),
        // The number of an IRQ, a softirq or a process follows its name.
        _ => Some(Content::Noise { kind, name: name.rsplit_once(':')?.0.trim(), start, duration }),
    }
}

/// Returns the name of a cause, as `crosswind record` has it.
fn cause(kind: &str, name: &str) -> String {
    match kind {
        "thread" => name.into(),
        "nmi" => "nmi".into(),
        _ => format!("{kind}:{name}"),
    }
}

/// Whether a line is none of an event: a remark of the tracer, or a frame of a stack.
fn is_no_event(line: &str) -> bool {
    line.is_empty() || line.starts_with('#') || line.starts_with("=>") || line.starts_with('<')
}

/// Reads all lines.
pub(super) fn read(text: &str) -> Result<Noise, DescriptionError> {
    let mut noise = Noise::default();
    let mut gaps: Vec<(usize, u32, u64, u64, bool)> = Vec::new();
    let (mut lost, mut latencies, mut periods, mut explained) = (0_u64, false, None, false);
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
        if line.starts_with("CPU:") && line.ends_with("EVENTS]") {
            let count = line.split_once("[LOST ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
            lost = lost.saturating_add(count.unwrap_or(1));
            continue;
        }
        let Some(event) = event(line) else {
            if is_no_event(line) {
                continue;
            }
            let expected = "it must be of a trace, such as `TASK-PID [CPU] FLAGS SECONDS: EVENT`";
            return Err(wrong(at, format!("is {:?}; {expected}", shown(line))));
        };
        let Some(content) = content_of(&event) else {
            let expected =
                "it must have `start SECONDS duration NUMBER ns`, or of hwlat `inner/outer(us): A/B ts:SECONDS`";
            return Err(wrong(at, format!("is {:?}; {expected}", shown(event.what))));
        };
        match content {
            // The idle task is no noise.
            Content::Noise { kind: "thread", name, .. } if name.starts_with("swapper/") => {}
            Content::Noise { kind, name, start, duration } => {
                explained = true;
                let cause = noise.cause(&cause(kind, name), at)?;
                noise.add(at, event.cpu, start, duration, cause)?;
            }
            Content::Gap { start, duration, interferences } => {
                if gaps.len() == super::MOST_INTERVALS {
                    return Err(wrong(at, format!("is one interval more than {}; no more are read", gaps.len())));
                }
                gaps.push((at, event.cpu, start, duration, interferences == 0));
            }
            Content::Hardware { start, duration } => {
                latencies = true;
                let cause = noise.cause("hardware", at)?;
                // One thread samples all CPUs in turn.
                noise.add(at, 0, start, duration, cause)?;
            }
            Content::Period { runtime } => {
                noise.saw(event.cpu, event.at_ns.saturating_sub(runtime), event.at_ns);
                periods = periods.or(Some(at));
            }
            Content::Other => {}
        }
    }
    for (at, cpu, start, duration, is_hardware) in gaps {
        // What tracepoints explain has been counted.
        if is_hardware || !explained {
            let cause = noise.cause(if is_hardware { "hardware" } else { "osnoise" }, at)?;
            noise.add(at, cpu, start, duration, cause)?;
        }
    }
    if let (0, Some(at)) = (noise.count, periods) {
        let sentence = "has sums of a period, and no line has a single interval; switch on the tracepoints too \
                        (`echo 1 > /sys/kernel/tracing/events/osnoise/enable`), or use `rtla osnoise top -t FILE`";
        return Err(wrong(at, sentence));
    }
    if lost > 0 {
        noise.warnings.push(format!("the trace lost {lost} events: the noise is at least this"));
    }
    if latencies {
        let sentence =
            "hwlat samples a part of the time and prints the longest gap of each window: the noise is at least this";
        noise.warnings.push(sentence.into());
    }
    Ok(noise)
}

#[cfg(test)]
mod tests {
    use crate::disturbance::{Disturbance, Recorded, RecordedInterval, Source};

    /// The example of the kernel's page on the tracer.
    const EVENTS: &str = "       osnoise/8-961     [008] d.h.  5789.857532: irq_noise: local_timer:236 start 5789.857529929 duration 1845 ns
       osnoise/8-961     [008] dNh.  5789.858408: irq_noise: local_timer:236 start 5789.858404871 duration 2848 ns
     migration/8-54      [008] d...  5789.858413: thread_noise: migration/8:54 start 5789.858409300 duration 3068 ns
       osnoise/8-961     [008] ....  5789.858413: sample_threshold: start 5789.858404555 duration 8812 ns interferences 2
";
    const PERIODS: &str = "# tracer: osnoise
#
#           TASK-PID      CPU# ||||   TIMESTAMP    IN US       IN US  AVAILABLE  IN US     HW    NMI    IRQ   SIRQ THREAD
                   <...>-859     [000] ....    81.637220: 1000000        190  99.98100       9     18      0   1007     18      1
                   <...>-860     [001] ....    81.638154: 1000000        656  99.93440      74     23      0   1006     16      3
";
    const HWLAT: &str = "# tracer: hwlat
           <...>-3638  [001] d... 19452.055471: #1     inner/outer(us):   12/14    ts:1499801089.066141940
           <...>-3638  [003] d... 19454.071354: #2     inner/outer(us):   11/9     ts:1499801091.082164365 count:2 nmi-total:4 nmi-count:1
";

    fn recorded(text: &str) -> Recorded {
        let read = Disturbance::from_toml(text.as_bytes(), "trace.txt").expect("a recording");
        let [Source::Recorded(recorded)] = &read.sources[..] else { panic!("{read:?}") };
        recorded.clone()
    }

    fn error(text: &str) -> String {
        Disturbance::from_toml(text.as_bytes(), "trace.txt").expect_err("it is wrong").to_string()
    }

    #[test]
    fn tracepoints_are_intervals_and_what_they_explain_counts_once() {
        let read = recorded(EVENTS);
        assert_eq!(read.causes, ["irq:local_timer", "migration/8"]);
        assert_eq!((read.cpu.len(), read.cpu[0].cpu), (1, 8));
        let [first, second, third] = &read.cpu[0].intervals[..] else { panic!("{read:?}") };
        assert_eq!(*first, RecordedInterval(0.0, 1845e-9, 0));
        assert_eq!(*second, RecordedInterval(874_942e-9, 2848e-9, 0));
        assert_eq!(*third, RecordedInterval(879_371e-9, 3068e-9, 1));
    }

    #[test]
    fn an_interval_within_another_waits_for_its_end() {
        let read = recorded(
            "a-1 [000] d... 1.000100: irq_noise: nic:9 start 1.000020000 duration 5000 ns\n\
             a-1 [000] d... 1.000200: thread_noise: a b:7:1 start 1.000010000 duration 50000 ns\n\
             a-1 [000] d... 1.100010: nmi_noise: start 1.100010000 duration 100 ns\n",
        );
        assert_eq!(read.causes, ["irq:nic", "a b:7", "nmi"]);
        let expected =
            [RecordedInterval(0.0, 50e-6, 1), RecordedInterval(50e-6, 5e-6, 0), RecordedInterval(0.1, 1e-7, 2)];
        assert_eq!(read.cpu[0].intervals, expected);
    }

    #[test]
    fn a_gap_without_interference_is_the_hardware() {
        let read = recorded(
            "a-1 [002] .... 2.000100: sample_threshold: start 2.000000000 duration 9000 ns interferences 0\n\
             a-1 [002] .... 2.100100: nmi_noise: start 2.100000000 duration 300 ns\n\
             <idle>-0 [002] d..3. 2.2: thread_noise: swapper/2:0 start 2.100001000 duration 9000000 ns\n\
             CPU:2 [LOST 7 EVENTS]\n",
        );
        assert_eq!(read.causes, ["nmi", "hardware"]);
        assert_eq!(read.cpu[0].intervals.len(), 2);
        assert_eq!(read.warnings, ["the trace lost 7 events: the noise is at least this"]);
        let alone = recorded(
            "a-1 [002] .... 2.1: sample_threshold: start 2.0 duration 9000 ns interferences 3\n\
                              a-1 [002] .... 2.1: sample_threshold: start 2.5 duration 9000 ns interferences 0\n",
        );
        assert_eq!(alone.causes, ["osnoise", "hardware"]);
    }

    #[test]
    fn periods_give_the_cpus_and_the_time() {
        let read = recorded(&format!(
            "{PERIODS}osnoise/1-9 [001] d... 81.0: irq_noise: timer:2 start 81.000000000 duration 4000 ns\n"
        ));
        let counts: Vec<_> = read.cpu.iter().map(|cpu| (cpu.cpu, cpu.intervals.len())).collect();
        assert_eq!(counts, [(0, 0), (1, 1)]);
        assert_eq!(read.length_s, crate::units::PositiveSeconds::fixed(1.000934));
        let sums = error(PERIODS);
        assert!(sums.starts_with("trace.txt:4:1: has sums of a period"), "{sums}");
    }

    #[test]
    fn hwlat_is_one_sequence_with_a_warning() {
        let read = recorded(HWLAT);
        assert_eq!(read.causes, ["hardware"]);
        let [cpu] = &read.cpu[..] else { panic!("{read:?}") };
        assert_eq!(cpu.intervals, [RecordedInterval(0.0, 14e-6, 0), RecordedInterval(2.016022425, 11e-6, 0)]);
        assert!(read.warnings[0].contains("at least this"));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let cut =
            error(&format!("{EVENTS}     osnoise/8-961     [008] d.h.  5789.9: irq_noise: local_timer:236 start 57\n"));
        assert!(
            cut.starts_with("trace.txt:5:1: is \"irq_noise: local_timer:236 start 57\"; it must have `start"),
            "{cut}"
        );
        let other = error(&format!("{EVENTS}interval_s = 3\n"));
        assert!(other.starts_with("trace.txt:5:1: is \"interval_s = 3\"; it must be of a trace"), "{other}");
        let hwlat = error("# tracer: hwlat\n a-1 [001] d... 1.0: #1 inner/outer(us): x/14 ts:1.0\n");
        assert!(hwlat.starts_with("trace.txt:2:1: is"), "{hwlat}");
        assert!(error("# tracer: osnoise\n").contains("has no noise"));
        let table = error("# RTLA osnoise histogram\n# Time unit is microseconds (us)\n");
        assert!(table.contains("rtla osnoise top -t FILE"), "{table}");
    }
}
