//! Parser of the kernel's scheduling events, for following threads rather than processors.

use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct Comms {
    names: Vec<String>,
    places: HashMap<String, u32>,
}

impl Comms {
    /// Returns the place of a name. Threads name themselves, so control characters become question marks.
    pub fn place(&mut self, name: &str) -> u32 {
        let plain: String;
        let name = if name.contains(char::is_control) {
            plain = name.trim_end().replace(char::is_control, "?");
            plain.as_str()
        } else {
            name
        };
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }

    #[must_use]
    pub fn name(&self, place: u32) -> &str {
        self.names.get(place as usize).map_or("", String::as_str)
    }
}

/// State of a thread that leaves its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    Runnable,
    /// By a signal.
    Stopped,
    /// By a tracer.
    Traced,
    /// Waits for a disk or a page.
    Uninterruptible,
    /// Waits for anything else, or has ended.
    Asleep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Switch {
        before: i32,
        before_comm: u32,
        leaves: Leaves,
        next: i32,
        comm: u32,
    },
    /// A thread has had the processor since then. Some kernels do not write the switch from idle to a thread.
    Ran {
        tid: i32,
        comm: u32,
        since_ns: u64,
    },
    /// A thread sends a process, or a thread of it, a signal that stops.
    Stop {
        target: i32,
        by: i32,
        comm: u32,
    },
    /// A thread becomes runnable on a processor.
    Wake {
        tid: i32,
        on: usize,
    },
    /// A runnable thread is moved to another processor's queue.
    Migrate {
        tid: i32,
        on: usize,
    },
    /// The kernel could not keep the events of this processor up to here.
    Lost,
}

/// One event of one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Monotonic clock, ns; the kernel writes microseconds.
    pub ns: u64,
    pub cpu: usize,
    pub what: What,
}

/// Joins the lines of an event that a thread's name with line ends in it has cut.
#[derive(Debug, Default)]
pub struct Joiner(HashMap<usize, String>);

const LONGEST: usize = 1_000;

impl Joiner {
    /// Takes the next line of a processor, and hands the event's whole text on when it is complete.
    pub fn take(&mut self, cpu: usize, line: &str, mut hand: impl FnMut(&str)) {
        let joined = self.0.remove(&cpu).map(|before| format!("{before}\n{line}"));
        let text = joined.as_deref().unwrap_or(line);
        if is_cut(text) && text.len() < LONGEST {
            self.0.insert(cpu, text.to_owned());
        } else {
            hand(text);
        }
    }
}

fn is_cut(text: &str) -> bool {
    let ends = [
        (": sched_switch: ", " next_prio="),
        (": sched_wakeup", " target_cpu="),
        (": sched_migrate_task: ", " dest_cpu="),
        (": sched_stat_runtime: ", " runtime="),
        (": signal_generate: ", " res="),
    ];
    ends.iter().any(|(event, end)| text.contains(event) && !text.contains(end))
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    Some(text.rsplit_once(key)?.1.split(' ').next()?.trim_end())
}

/// Parses a line of `trace_pipe`; `None` for lines of other events.
pub fn parsed(cpu: usize, line: &str, comms: &mut Comms) -> Option<Event> {
    let (by, after_cpu) = line.split_once("] ")?;
    let (head, text) = after_cpu.split_once(": ")?;
    let (seconds, micros) = head.rsplit_once(' ')?.1.split_once('.')?;
    let ns = seconds.parse::<u64>().ok()? * 1_000_000_000 + micros.parse::<u64>().ok()? * 1_000;
    let (kind, text) = text.split_once(": ")?;
    let what = match kind {
        "sched_switch" => {
            let (before, next) = text.rsplit_once(" ==> next_comm=")?;
            let (name, rest) = next.rsplit_once(" next_pid=")?;
            let (before_name, _) = before.strip_prefix("prev_comm=")?.rsplit_once(" prev_pid=")?;
            let leaves = match value(before, " prev_state=")?.as_bytes().first()? {
                b'R' => Leaves::Runnable,
                b'T' => Leaves::Stopped,
                b't' => Leaves::Traced,
                b'D' => Leaves::Uninterruptible,
                _ => Leaves::Asleep,
            };
            What::Switch {
                before: value(before, " prev_pid=")?.parse().ok()?,
                before_comm: comms.place(before_name),
                leaves,
                next: rest.split(' ').next()?.parse().ok()?,
                comm: comms.place(name),
            }
        }
        "sched_wakeup" | "sched_wakeup_new" => {
            What::Wake { tid: value(text, " pid=")?.parse().ok()?, on: value(text, " target_cpu=")?.parse().ok()? }
        }
        "sched_migrate_task" => {
            What::Migrate { tid: value(text, " pid=")?.parse().ok()?, on: value(text, " dest_cpu=")?.parse().ok()? }
        }
        "sched_stat_runtime" => {
            let (name, rest) = text.strip_prefix("comm=")?.rsplit_once(" pid=")?;
            let ran_ns: u64 = value(text, " runtime=")?.parse().ok()?;
            let tid = rest.split(' ').next()?.parse().ok()?;
            What::Ran { tid, comm: comms.place(name), since_ns: ns.saturating_sub(ran_ns) }
        }
        "signal_generate" => {
            // The head has the sender: "  name-123  [001".
            let (name, tid) = by.rsplit_once(" [")?.0.trim().rsplit_once('-')?;
            What::Stop { target: value(text, " pid=")?.parse().ok()?, by: tid.parse().ok()?, comm: comms.place(name) }
        }
        _ => return None,
    };
    Some(Event { ns, cpu, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_parsed_whatever_a_thread_is_called() {
        let mut comms = Comms::default();
        let switch = "  a pid=3 b-100  [001] d..2.  12.000345: sched_switch: prev_comm=a pid=3 b prev_pid=100 prev_prio=120 \
                      prev_state=R+ ==> next_comm=x ==> next_pid=9 y next_pid=77 next_prio=98";
        let event = parsed(1, switch, &mut comms).expect("a switch");
        let What::Switch { before, before_comm, leaves, next, comm } = event.what else { panic!("{event:?}") };
        assert_eq!(comms.name(before_comm), "a pid=3 b");
        assert_eq!((event.ns, event.cpu), (12_000_345_000, 1));
        assert_eq!((before, leaves, next), (100, Leaves::Runnable, 77));
        assert_eq!(comms.name(comm), "x ==> next_pid=9 y");
        let wake = " <idle>-0 [000] dNh4.  1.000001: sched_wakeup: comm=a pid=100 prio=120 target_cpu=003";
        assert_eq!(parsed(0, wake, &mut comms).map(|event| event.what), Some(What::Wake { tid: 100, on: 3 }));
        let moved = " m-1 [000] d..3.  1.000001: sched_migrate_task: comm=a pid=100 prio=120 orig_cpu=3 dest_cpu=12";
        assert_eq!(parsed(0, moved, &mut comms).map(|event| event.what), Some(What::Migrate { tid: 100, on: 12 }));
        for (state, leaves) in [("T", Leaves::Stopped), ("t", Leaves::Traced), ("D", Leaves::Uninterruptible)] {
            let line = switch.replace("prev_state=R+", &format!("prev_state={state}"));
            let what = parsed(1, &line, &mut comms).map(|event| event.what);
            assert!(matches!(what, Some(What::Switch { leaves: found, .. }) if found == leaves), "{line}");
        }
    }

    #[test]
    fn a_name_with_line_ends_cuts_no_event() {
        let (mut comms, mut joiner, mut events) = (Comms::default(), Joiner::default(), Vec::new());
        let lines = [
            "  a",
            "-100  [001] d..2.  1.000001: sched_switch: prev_comm=a",
            " prev_pid=100 prev_prio=120 prev_state=R ==> next_comm=b",
            "c",
            " next_pid=77 next_prio=120",
            " x-7 [001] dNh4.  1.000002: sched_wakeup: comm=a",
            " pid=100 prio=120 target_cpu=001",
            " x-7 [001] dNh4.  1.000003: sched_wakeup: comm=y pid=9 prio=120 target_cpu=001",
        ];
        for line in lines {
            joiner.take(1, line, |text| events.extend(parsed(1, text, &mut comms).map(|event| event.what)));
        }
        let switch = What::Switch { before: 100, before_comm: 0, leaves: Leaves::Runnable, next: 77, comm: 1 };
        assert_eq!(events, [switch, What::Wake { tid: 100, on: 1 }, What::Wake { tid: 9, on: 1 }]);
        assert_eq!((comms.name(0), comms.name(1)), ("a", "b?c"));
    }

    #[test]
    fn what_ran_and_what_stops_are_parsed() {
        let mut comms = Comms::default();
        let ran = " sh pid=1-64 [001] d.h1. 13.893280: sched_stat_runtime: comm=sh pid=1 pid=64 runtime=3092119 [ns]";
        let event = parsed(1, ran, &mut comms).expect("a time");
        assert_eq!(event.what, What::Ran { tid: 64, comm: 0, since_ns: 13_893_280_000 - 3_092_119 });
        assert_eq!(comms.name(0), "sh pid=1");
        let older = ran.replace("runtime=3092119 [ns]", "runtime=3092119 [ns] vruntime=77 [ns]");
        assert_eq!(parsed(1, &older, &mut comms), Some(event));
        let stop =
            "  my kill-812  [000] d..2. 13.9: signal_generate: sig=19 errno=0 code=0 comm=job pid=64 grp=1 res=0";
        let stop = parsed(0, &stop.replace("13.9:", "13.900000:"), &mut comms).map(|event| event.what);
        assert_eq!(stop, Some(What::Stop { target: 64, by: 812, comm: 1 }));
        assert_eq!(comms.name(1), "my kill");
    }

    #[test]
    fn what_is_no_event_of_ours_is_left_out() {
        let mut comms = Comms::default();
        let lines = ["", "CPU:1 [LOST EVENTS]", "# tracer: nop", "a-1 [000] d. 1.000001: sched_switch: x", ": : :"];
        assert!(lines.iter().all(|line| parsed(0, line, &mut comms).is_none()));
    }
}
