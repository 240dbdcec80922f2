//! Parser of the kernel's trace: what had a CPU, and since when.
//!
//! The lines are those of `trace_pipe` with the events `sched_switch`, `irq_handler_*`, `softirq_*` and
//! `irq_vectors`. Interrupts nest within threads and within each other; the innermost has the CPU.

use std::collections::{HashMap, HashSet};

use crate::process::Process;

/// A thread or interrupt that can have a CPU, as an index into [`Names`], or one of the constants below.
pub type CauseId = u16;
/// The loop that looks for gaps, with nothing interrupting it.
pub const LOOP: CauseId = u16::MAX;
/// The recorder's other threads: its own noise.
pub const OWN: CauseId = u16::MAX - 1;
/// No cause recorded by the kernel.
pub const UNKNOWN: CauseId = u16::MAX - 2;
/// Unknown cause, because the kernel lost events.
pub const LOST: CauseId = u16::MAX - 3;
/// The CPU was idle although the loop was ready to run.
pub const WITHHELD: CauseId = u16::MAX - 4;

/// Most distinct causes; further ones are counted as "others".
const MOST_CAUSES: usize = 500;
const OTHERS: &str = "others";
/// Most processes that are distinguished, and most threads whose process is remembered.
const MOST_PROCESSES: usize = 20_000;
const MOST_MET: usize = 100_000;

/// Names of causes, in order of first appearance; threads of one name and process are one.
#[derive(Debug, Default)]
pub struct Names {
    all: Vec<(String, Option<Process>)>,
    places: HashMap<(String, Option<i32>), CauseId>,
    kinds: HashSet<String>,
    look_up: Option<fn(i32) -> Option<Process>>,
    /// Name and cause of every thread that has had a CPU.
    met: HashMap<i32, (String, CauseId)>,
}

impl Names {
    /// Makes names that distinguish the processes of threads.
    #[must_use]
    pub fn with_processes(look_up: fn(i32) -> Option<Process>) -> Self {
        Self { look_up: Some(look_up), ..Self::default() }
    }

    /// Returns the index of a name, adding it if it is new.
    pub fn place(&mut self, name: &str) -> CauseId {
        self.place_of(name, None)
    }

    /// Returns the index of a thread of this name.
    fn of_thread(&mut self, kind: &str, tid: i32) -> CauseId {
        if let Some((known, place)) = self.met.get(&tid)
            && known == kind
        {
            return *place;
        }
        let process = self.look_up.and_then(|look_up| look_up(tid)).filter(|_| self.all.len() < MOST_PROCESSES);
        let place = self.place_of(&format!("thread:{kind}"), process);
        if self.met.len() >= MOST_MET {
            self.met.clear(); // those that still run are met again
        }
        self.met.insert(tid, (kind.to_owned(), place));
        place
    }

    fn place_of(&mut self, name: &str, process: Option<Process>) -> CauseId {
        let known = self.kinds.contains(name) || self.kinds.len() < MOST_CAUSES;
        let (name, process) = if known { (name, process) } else { (OTHERS, None) };
        let key = (name.to_owned(), process.as_ref().map(|process| process.pid));
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        let place = self.all.len() as CauseId;
        self.kinds.insert(name.to_owned());
        self.all.push((name.to_owned(), process));
        self.places.insert(key, place);
        place
    }

    /// Returns the name of each cause for files: where processes of one name are in several control groups or
    /// containers, these are part of it. Processes in the same one share a name.
    #[must_use]
    pub fn for_files(&self) -> Vec<String> {
        let mut groups: HashMap<&str, HashSet<&str>> = HashMap::new();
        for (name, process) in &self.all {
            if let Some(process) = process.as_ref().filter(|process| !process.cgroup.is_empty()) {
                groups.entry(name.as_str()).or_default().insert(process.cgroup.as_str());
            }
        }
        let mut used: HashSet<String> = self.kinds.clone();
        let mut named = |(name, process): &(String, Option<Process>)| match process {
            Some(process) if groups.get(name.as_str()).is_some_and(|groups| groups.len() > 1) => {
                let full = format!("{name} ({})", process.place());
                let fits = used.contains(&full) || used.len() < MOST_CAUSES;
                if fits && !process.place().is_empty() {
                    used.insert(full.clone());
                    full
                } else {
                    name.clone()
                }
            }
            _ => name.clone(),
        };
        self.all.iter().map(&mut named).collect()
    }

    /// Returns the process of each cause; `None`: an interrupt, a thread of the kernel, or not known.
    #[must_use]
    pub fn processes(&self) -> Vec<Option<Process>> {
        self.all.iter().map(|(_, process)| process.clone()).collect()
    }
}

/// A change of the cause that has a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Monotonic clock, ns; the kernel writes microseconds.
    pub from_ns: u64,
    /// Cause that has the CPU from then on.
    pub cause: CauseId,
}

/// One event of one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event<'a> {
    /// Switch from a thread, which was ready to continue or not, to one of that name.
    Switch {
        before: i32,
        ready: bool,
        name: &'a str,
        thread: i32,
    },
    Enter(String),
    Leave,
}

/// Parses a line into its time in ns and its event; `None` for other lines.
fn parsed(line: &str) -> Option<(u64, Event<'_>)> {
    // "  comm-pid   [001] d..2.  1234.567890: sched_switch: ..."; the name may contain any characters.
    let (_, after_cpu) = line.split_once("] ")?;
    let (head, text) = after_cpu.split_once(": ")?;
    let (seconds, micros) = head.rsplit_once(' ')?.1.split_once('.')?;
    let ns = seconds.parse::<u64>().ok()? * 1_000_000_000 + micros.parse::<u64>().ok()? * 1_000;
    let (kind, what) = text.split_once(':')?;
    let event = match kind {
        "sched_switch" => {
            let (before, next) = what.rsplit_once(" ==> next_comm=")?;
            let (name, rest) = next.rsplit_once(" next_pid=")?;
            let before = before.rsplit_once(" prev_pid=")?.1;
            Event::Switch {
                before: before.split(' ').next()?.parse().ok()?,
                ready: before.rsplit_once(" prev_state=").is_some_and(|(_, state)| state.starts_with('R')),
                name,
                thread: rest.split(' ').next()?.parse().ok()?,
            }
        }
        "irq_handler_entry" => Event::Enter(format!("irq:{}", what.rsplit_once("name=")?.1.trim_end())),
        "softirq_entry" => {
            Event::Enter(format!("softirq:{}", what.rsplit_once("action=")?.1.trim_end().trim_end_matches(']')))
        }
        "local_timer_entry" => Event::Enter("timer".into()),
        "irq_handler_exit" | "softirq_exit" => Event::Leave,
        other => match other.strip_suffix("_entry") {
            Some(name) => Event::Enter(format!("ipi:{name}")),
            None => other.strip_suffix("_exit").map(|_| Event::Leave)?,
        },
    };
    Some((ns, event))
}

/// Whether a line reports lost events: `CPU:1 [LOST 20 EVENTS]`.
pub(crate) fn tells_loss(line: &str) -> bool {
    line.strip_prefix("CPU:").is_some_and(|rest| rest.contains("[LOST ") && rest.trim_end().ends_with("EVENTS]"))
}

/// Strips the part that distinguishes threads of one kind: `kworker/0:1-events` is a `kworker`, `opt cgu.3` an `opt`.
fn kind_of(name: &str) -> &str {
    let kind = name.split(['/', ' ', ':']).next().unwrap_or_default();
    if kind.is_empty() { name } else { kind }
}

#[derive(Debug)]
pub struct Follower {
    /// The thread that has the CPU while no interrupt does.
    thread: CauseId,
    nested: Vec<CauseId>,
    /// Whether the loop lost the CPU although it was ready to continue.
    loop_is_ready: bool,
    /// Time of the last event, ns.
    last_ns: u64,
}

impl Default for Follower {
    fn default() -> Self {
        Self { thread: LOOP, nested: Vec::new(), loop_is_ready: false, last_ns: 0 }
    }
}

impl Follower {
    /// Parses a line. Returns what has the CPU, and since when. `of_thread` identifies the threads of the loops and
    /// of the recorder.
    pub fn take(&mut self, line: &str, names: &mut Names, of_thread: impl Fn(i32) -> Option<CauseId>) -> Option<Turn> {
        if tells_loss(line) {
            // From the last event until the next switch the cause is unknown.
            (self.thread, self.loop_is_ready) = (LOST, false);
            self.nested.clear();
            return Some(Turn { from_ns: self.last_ns, cause: LOST });
        }
        let (from_ns, event) = parsed(line)?;
        self.last_ns = from_ns;
        match event {
            Event::Switch { before, ready, name, thread } => {
                if of_thread(before) == Some(LOOP) {
                    self.loop_is_ready = ready;
                }
                let next = of_thread(thread);
                self.loop_is_ready &= next != Some(LOOP);
                self.thread = match next {
                    None if thread == 0 && self.loop_is_ready => WITHHELD,
                    known => known.unwrap_or_else(|| names.of_thread(kind_of(name), thread)),
                };
                self.nested.clear();
            }
            Event::Enter(name) => self.nested.push(names.place(&name)),
            Event::Leave => {
                self.nested.pop();
            }
        }
        Some(Turn { from_ns, cause: self.nested.last().copied().unwrap_or(self.thread) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "  python3-100     [001] d..2. 12981.074320: sched_switch: prev_comm=python3 prev_pid=100 prev_prio=120 \
                          prev_state=R ==> next_comm=kworker/1:2-eve nts next_pid=7 next_prio=120";
    const BACK: &str = "  kworker/1:2-7   [001] d..2. 12981.074400: sched_switch: prev_comm=kworker/1:2 prev_pid=7 prev_prio=120 \
                        prev_state=I ==> next_comm=python3 next_pid=100 next_prio=120";

    fn turns(lines: &[&str]) -> (Vec<(u64, String)>, Names) {
        let (mut follower, mut names) = (Follower::default(), Names::default());
        let turns: Vec<Turn> = lines
            .iter()
            .filter_map(|line| follower.take(line, &mut names, |thread| (thread == 100).then_some(LOOP)))
            .collect();
        let name = |cause: CauseId| match cause {
            LOOP => "loop".to_owned(),
            LOST => "lost".to_owned(),
            WITHHELD => "withheld".to_owned(),
            known => names.for_files()[usize::from(known)].clone(),
        };
        (turns.iter().map(|turn| (turn.from_ns / 1000 % 1_000_000, name(turn.cause))).collect(), names)
    }

    fn spoken(lines: &[&str]) -> Vec<(u64, String)> {
        turns(lines).0
    }

    #[test]
    fn the_innermost_interrupt_has_the_processor_and_gives_it_back_to_the_one_around_it() {
        let lines = [
            SWITCH,
            "  kworker/1:2-7  [001] d.h.. 12981.074330: local_timer_entry: vector=236",
            "  kworker/1:2-7  [001] d.h.. 12981.074331: irq_handler_entry: irq=31 name=virtio0-stats",
            "  kworker/1:2-7  [001] d.h.. 12981.074332: irq_handler_exit: irq=31 ret=handled",
            "  kworker/1:2-7  [001] d.h.. 12981.074333: local_timer_exit: vector=236",
            "  kworker/1:2-7  [001] ..s.. 12981.074334: softirq_raise: vec=8 [action=HRTIMER]",
            "  kworker/1:2-7  [001] ..s.. 12981.074335: softirq_entry: vec=3 [action=NET_RX]",
            "  kworker/1:2-7  [001] ..s.. 12981.074336: softirq_exit: vec=3 [action=NET_RX]",
            BACK,
        ];
        let named: Vec<(u64, String)> = [
            (74320, "thread:kworker"),
            (74330, "timer"),
            (74331, "irq:virtio0-stats"),
            (74332, "timer"),
            (74333, "thread:kworker"),
            (74335, "softirq:NET_RX"),
            (74336, "thread:kworker"),
            (74400, "loop"),
        ]
        .map(|(at, name)| (at, name.to_owned()))
        .to_vec();
        assert_eq!(spoken(&lines), named);
    }

    #[test]
    fn lines_of_any_other_kind_are_passed_over() {
        let lines = ["", "# tracer: nop", "CPU:1 is lost", "a-1 [000] x: y: z", ": : :", "a 1.x: sched_switch: q"];
        assert_eq!(spoken(&lines), []);
        let named = spoken(&["  (a: b)-9 [000] d..2. 1.000001: reschedule_entry: vector=253"]);
        assert_eq!(named, [(1, "ipi:reschedule".to_owned())]);
    }

    #[test]
    fn after_a_loss_nothing_is_known_until_the_next_switch() {
        let lines = [
            "CPU:1 [LOST EVENTS]",
            SWITCH,
            "  kworker/1:2-7  [001] d.h.. 12981.074330: local_timer_entry: vector=236",
            "CPU:1 [LOST 20 EVENTS]",
            "  kworker/1:2-7  [001] d.h.. 12981.074360: softirq_exit: vec=3 [action=NET_RX]",
            BACK,
        ];
        let named = [
            (0, "lost"),
            (74320, "thread:kworker"),
            (74330, "timer"),
            (74330, "lost"),
            (74360, "lost"),
            (74400, "loop"),
        ];
        assert_eq!(spoken(&lines), named.map(|(at, name)| (at, name.to_owned())));
    }

    #[test]
    fn an_idle_cpu_is_withheld_from_a_loop_that_could_run_and_not_from_one_that_waits() {
        let idle = |state: &str| {
            format!(
                "  python3-100 [001] d..2. 1.000010: sched_switch: prev_comm=a ==> b prev_pid=100 prev_prio=120 \
                 prev_state={state} ==> next_comm=swapper/1 next_pid=0 next_prio=120"
            )
        };
        let other = "  x-7 [001] d..2. 1.000020: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 \
                     prev_state=R ==> next_comm=x next_pid=7 next_prio=120";
        let idle_again = "  x-7 [001] d..2. 1.000030: sched_switch: prev_comm=x prev_pid=7 prev_prio=120 \
                          prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120";
        let named = |state| spoken(&[&idle(state), other, idle_again]);
        let expected = |name: &str| [(10, name), (20, "thread:x"), (30, name)].map(|(at, name)| (at, name.to_owned()));
        assert_eq!(named("R"), expected("withheld"));
        assert_eq!(named("R+"), expected("withheld"));
        assert_eq!(named("D"), expected("thread:swapper"));
    }

    #[test]
    fn more_causes_than_can_be_told_apart_are_others() {
        let mut names = Names::default();
        for number in 0..2 * MOST_CAUSES {
            names.place(&format!("thread:{number}"));
        }
        assert_eq!(names.for_files().len(), MOST_CAUSES + 1);
        assert_eq!(names.place("thread:new"), names.place(OTHERS));
    }

    fn process(tid: i32) -> Option<Process> {
        let group = match tid {
            1..=2 => "/system.slice/exporter.service".to_owned(),
            3 => format!("/docker/{}", "a".repeat(64)),
            4 => String::new(),
            _ => return None,
        };
        Some(Process { pid: tid, command: format!("command {tid}"), cgroup: group })
    }

    #[test]
    fn processes_of_one_name_are_told_apart_by_their_groups_and_containers() {
        let mut names = Names::with_processes(process);
        let places: Vec<CauseId> = [1, 2, 3, 4, 5].map(|tid| names.of_thread("python", tid)).to_vec();
        assert_eq!(places, [0, 1, 2, 3, 4]);
        let expected = [
            "thread:python (exporter.service)",
            "thread:python (exporter.service)",
            "thread:python (docker aaaaaaaaaaaa)",
            "thread:python",
            "thread:python",
        ];
        assert_eq!(names.for_files(), expected);
        let pids: Vec<Option<i32>> = names.processes().iter().map(|one| one.as_ref().map(|one| one.pid)).collect();
        assert_eq!(pids, [Some(1), Some(2), Some(3), Some(4), None]);
    }

    #[test]
    fn processes_of_one_name_in_one_group_keep_the_name() {
        let mut names = Names::with_processes(process);
        names.of_thread("python", 1);
        names.of_thread("python", 2);
        assert_eq!(names.for_files(), ["thread:python"; 2]);
    }

    #[test]
    fn a_thread_that_runs_another_program_is_looked_up_again() {
        let mut names = Names::with_processes(process);
        let (shell, program) = (names.of_thread("sh", 1), names.of_thread("sleep", 1));
        assert_ne!(shell, program);
        assert_eq!(names.of_thread("sleep", 1), program);
    }
}
