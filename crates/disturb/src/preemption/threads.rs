//! Follows the threads of ranks through the kernel's scheduling events: when each could run and did not, and what had
//! its processor meanwhile.
//!
//! A thread waits in the queue of one processor. Whatever runs there keeps it waiting, one after the other: an absence
//! is cut into pieces at each switch of that processor.

use std::collections::HashMap;

use super::events::{Event, Leaves, What};

/// Shorter pieces are only summed up: waking takes some microseconds, and the kernel's trace counts whole ones.
pub const SHORTEST_NS: u64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It could run, and another thread had the processor.
    Preempted = 0,
    /// A signal or a tracer had stopped it; `by` sent the signal, or traces it.
    Stopped = 1,
    /// It waited for a disk or a page.
    Uninterruptible = 2,
    /// It could run, and its processor was idle: withheld, as by a quota.
    Withheld = 3,
}

/// What had a processor: a thread, and its name at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Occupant {
    pub tid: i32,
    pub comm: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    pub start_ns: u64,
    pub end_ns: u64,
    pub tid: i32,
    pub cpu: usize,
    pub kind: Kind,
    pub by: Option<Occupant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    Running,
    Asleep,
    /// Could run since the end of the last piece.
    Waiting {
        from_ns: u64,
        cpu: usize,
    },
    Held {
        from_ns: u64,
        cpu: usize,
        kind: Kind,
        by: Option<Occupant>,
    },
}

#[derive(Debug)]
struct Followed {
    process: i32,
    state: State,
    pieces: Vec<Absence>,
}

/// All followed threads, and what each processor runs.
#[derive(Debug, Default)]
pub struct Threads {
    followed: HashMap<i32, Followed>,
    running: HashMap<usize, Occupant>,
    /// The sender of the last signal that stops a thread or process, and the tracer of a process.
    stoppers: HashMap<i32, Occupant>,
    tracers: HashMap<i32, Occupant>,
    done: Vec<Absence>,
    /// Number and length of the pieces that are too short to be kept.
    pub short: HashMap<i32, (u64, u64)>,
}

impl Threads {
    pub fn follow(&mut self, tid: i32, process: i32) {
        self.followed.entry(tid).or_insert(Followed { process, state: State::Unknown, pieces: Vec::new() });
    }

    /// Names the tracer of a process.
    pub fn traced_by(&mut self, process: i32, tracer: Occupant) {
        self.tracers.insert(process, tracer);
    }

    /// Takes the absences that have ended.
    pub fn taken(&mut self) -> Vec<Absence> {
        std::mem::take(&mut self.done)
    }

    /// Takes the next event; events come in the order of their times.
    pub fn on_event(&mut self, event: &Event) {
        match event.what {
            What::Switch { before, before_comm, leaves, next, comm } => {
                // The switch from idle to a thread may not be written: it is the one before that ran.
                let running = self.running.entry(event.cpu).or_insert(Occupant { tid: before, comm: before_comm });
                if running.tid == 0 && before != 0 {
                    *running = Occupant { tid: before, comm: before_comm };
                }
                self.cut(event.cpu, event.ns, before);
                if before != next {
                    self.leave(before, leaves, event);
                }
                self.run(next, event.ns);
                self.running.insert(event.cpu, Occupant { tid: next, comm });
            }
            What::Wake { tid, on } => {
                if let Some(thread) = self.followed.get_mut(&tid)
                    && !matches!(thread.state, State::Running | State::Waiting { .. })
                {
                    end_hold(thread, tid, event.ns);
                    thread.state = State::Waiting { from_ns: event.ns, cpu: on };
                }
            }
            What::Ran { tid, comm, since_ns } => self.ran(Occupant { tid, comm }, since_ns, event),
            What::Stop { target, by, comm } => {
                self.stoppers.insert(target, Occupant { tid: by, comm });
            }
            What::Migrate { tid, on } => {
                let by = |cpu| self.running.get(&cpu).copied();
                if let Some(thread) = self.followed.get_mut(&tid)
                    && let State::Waiting { from_ns, cpu } = thread.state
                {
                    add_piece(thread, tid, (from_ns, event.ns), cpu, by(cpu));
                    thread.state = State::Waiting { from_ns: event.ns, cpu: on };
                }
            }
            What::Lost => {
                self.running.remove(&event.cpu);
                for thread in self.followed.values_mut() {
                    // Where it is now is not known.
                    thread.state = State::Unknown;
                    thread.pieces.clear();
                }
            }
        }
    }

    /// The processor passes to another thread, or back from the one that `ran`: what waits for it waited for the one before.
    fn cut(&mut self, on: usize, ns: u64, ran: i32) {
        let by = self.running.get(&on).copied();
        for (tid, thread) in &mut self.followed {
            if let State::Waiting { from_ns, cpu } = thread.state
                && cpu == on
                && *tid != ran
            {
                add_piece(thread, *tid, (from_ns, ns), cpu, by);
                thread.state = State::Waiting { from_ns: ns.max(from_ns), cpu };
            }
        }
    }

    /// A thread is seen to have had its processor for a while.
    fn ran(&mut self, one: Occupant, since_ns: u64, event: &Event) {
        let waits = |thread: &Followed| matches!(thread.state, State::Waiting { cpu, .. } if cpu == event.cpu);
        if self.running.get(&event.cpu).is_none_or(|running| running.tid != one.tid) {
            self.cut(event.cpu, since_ns, one.tid);
            if self.followed.get(&one.tid).is_some_and(waits) {
                self.run(one.tid, since_ns);
            }
            self.running.insert(event.cpu, one);
        }
    }

    fn leave(&mut self, tid: i32, leaves: Leaves, event: &Event) {
        // Where the switch to it was not written: when its last wait ended is not known, the pieces before are.
        self.flush(tid);
        let Self { followed, stoppers, tracers, .. } = self;
        if let Some(thread) = followed.get_mut(&tid) {
            let held = |kind, by| State::Held { from_ns: event.ns, cpu: event.cpu, kind, by };
            let stopper = || stoppers.get(&tid).or_else(|| stoppers.get(&thread.process)).copied();
            thread.state = match leaves {
                Leaves::Runnable => State::Waiting { from_ns: event.ns, cpu: event.cpu },
                Leaves::Stopped => held(Kind::Stopped, stopper()),
                Leaves::Traced => held(Kind::Stopped, tracers.get(&thread.process).copied()),
                Leaves::Uninterruptible => held(Kind::Uninterruptible, None),
                Leaves::Asleep => State::Asleep,
            };
        }
    }

    fn run(&mut self, tid: i32, ns: u64) {
        let Some(thread) = self.followed.get_mut(&tid) else { return };
        let by = |cpu| self.running.get(&cpu).copied();
        if let State::Waiting { from_ns, cpu } = thread.state {
            add_piece(thread, tid, (from_ns, ns), cpu, by(cpu));
        }
        end_hold(thread, tid, ns);
        thread.state = State::Running;
        self.flush(tid);
    }

    /// Keeps the pieces of an absence that is over.
    fn flush(&mut self, tid: i32) {
        let Some(thread) = self.followed.get_mut(&tid) else { return };
        for piece in thread.pieces.drain(..) {
            if piece.end_ns - piece.start_ns >= SHORTEST_NS {
                self.done.push(piece);
            } else {
                let (count, sum) = self.short.entry(tid).or_default();
                *count += 1;
                *sum += piece.end_ns - piece.start_ns;
            }
        }
    }
}

fn end_hold(thread: &mut Followed, tid: i32, ns: u64) {
    if let State::Held { from_ns, cpu, kind, by } = thread.state
        && ns > from_ns
    {
        thread.pieces.push(Absence { start_ns: from_ns, end_ns: ns, tid, cpu, kind, by });
    }
}

/// Adds a piece of waiting. One with the cause of the last piece extends it.
fn add_piece(thread: &mut Followed, tid: i32, (start_ns, end_ns): (u64, u64), cpu: usize, by: Option<Occupant>) {
    if end_ns <= start_ns {
        return;
    }
    let idle = by.is_some_and(|one| one.tid == 0);
    let kind = if idle { Kind::Withheld } else { Kind::Preempted };
    let by = by.filter(|one| one.tid != 0 && one.tid != tid);
    match thread.pieces.last_mut() {
        Some(last) if (last.kind, last.by, last.cpu, last.end_ns) == (kind, by, cpu, start_ns) => last.end_ns = end_ns,
        _ => thread.pieces.push(Absence { start_ns, end_ns, tid, cpu, kind, by }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(us: u64, cpu: usize, before: i32, leaves: Leaves, next: i32) -> Event {
        let what = What::Switch { before, before_comm: before as u32, leaves, next, comm: next as u32 };
        Event { ns: us * 1000, cpu, what }
    }

    fn ran(us: u64, cpu: usize, tid: i32, for_us: u64) -> Event {
        let what = What::Ran { tid, comm: tid as u32, since_ns: (us - for_us) * 1000 };
        Event { ns: us * 1000, cpu, what }
    }

    fn wake(us: u64, tid: i32, on: usize) -> Event {
        Event { ns: us * 1000, cpu: 0, what: What::Wake { tid, on } }
    }

    /// Start, end (us), kind and occupant of each absence of thread 7.
    fn absences(events: &[Event]) -> Vec<(u64, u64, Kind, Option<i32>)> {
        let mut threads = Threads::default();
        threads.follow(7, 7);
        events.iter().for_each(|event| threads.on_event(event));
        let taken = threads.taken();
        taken.iter().map(|one| (one.start_ns / 1000, one.end_ns / 1000, one.kind, one.by.map(|by| by.tid))).collect()
    }

    use Leaves::{Asleep, Runnable, Stopped, Uninterruptible};

    #[test]
    fn a_preempted_thread_waits_for_each_that_has_its_processor_in_turn() {
        let events = [
            switch(0, 1, 3, Asleep, 7),
            switch(100, 1, 7, Runnable, 8),
            switch(150, 0, 5, Runnable, 6), // another processor
            switch(300, 1, 8, Asleep, 9),
            switch(450, 1, 9, Runnable, 7),
        ];
        let expected = [(100, 300, Kind::Preempted, Some(8)), (300, 450, Kind::Preempted, Some(9))];
        assert_eq!(absences(&events), expected);
    }

    #[test]
    fn a_woken_thread_waits_from_then_on_and_its_sleep_is_no_absence() {
        let events = [
            switch(0, 1, 3, Asleep, 7),
            switch(100, 1, 7, Asleep, 8),
            wake(5_000, 7, 1),
            wake(5_010, 7, 1),
            switch(5_200, 1, 8, Runnable, 7),
        ];
        assert_eq!(absences(&events), [(5_000, 5_200, Kind::Preempted, Some(8))]);
    }

    #[test]
    fn a_thread_that_is_moved_waits_for_what_runs_there() {
        let moved = Event { ns: 200_000, cpu: 0, what: What::Migrate { tid: 7, on: 2 } };
        let events = [
            switch(0, 2, 1, Runnable, 20),
            switch(10, 1, 3, Asleep, 7),
            switch(100, 1, 7, Runnable, 8),
            moved,
            switch(400, 2, 20, Runnable, 7),
        ];
        let expected = [(100, 200, Kind::Preempted, Some(8)), (200, 400, Kind::Preempted, Some(20))];
        assert_eq!(absences(&events), expected);
    }

    #[test]
    fn stopped_waiting_for_a_disk_and_withheld_are_told_apart() {
        let held = |leaves| {
            absences(&[
                switch(0, 1, 3, Asleep, 7),
                switch(100, 1, 7, leaves, 0),
                wake(900, 7, 1),
                switch(902, 1, 0, Runnable, 7),
            ])
        };
        assert_eq!(held(Stopped), [(100, 900, Kind::Stopped, None)]);
        assert_eq!(held(Uninterruptible), [(100, 900, Kind::Uninterruptible, None)]);
        assert_eq!(held(Asleep), []);
        let idle =
            absences(&[switch(0, 1, 3, Asleep, 7), switch(100, 1, 7, Runnable, 0), switch(900, 1, 0, Runnable, 7)]);
        assert_eq!(idle, [(100, 900, Kind::Withheld, None)]);
    }

    /// Switches from idle to a thread are not written here, as on some kernels.
    #[test]
    fn a_thread_that_ran_was_not_withheld_meanwhile() {
        let throttled = [
            switch(0, 1, 3, Asleep, 7),
            switch(100, 1, 7, Runnable, 0),
            ran(2_100, 1, 7, 1_000),
            ran(3_100, 1, 7, 1_000),
            switch(3_500, 1, 7, Runnable, 0),
            // It ran again from some moment on, too shortly to be seen.
            switch(9_000, 1, 7, Asleep, 0),
        ];
        assert_eq!(absences(&throttled), [(100, 1_100, Kind::Withheld, None)]);
        let woken = [switch(0, 1, 7, Asleep, 0), wake(500, 7, 1), switch(900, 1, 7, Asleep, 0)];
        assert_eq!(absences(&woken), []);
        let held_back = [switch(0, 1, 7, Asleep, 0), wake(500, 7, 1), ran(1_900, 1, 7, 600)];
        assert_eq!(absences(&held_back), [(500, 1_300, Kind::Withheld, None)]);
    }

    #[test]
    fn what_ran_is_what_kept_the_processor_though_the_switch_to_it_was_not_written() {
        let seen_later = [
            switch(0, 1, 7, Asleep, 0),
            ran(600, 1, 9, 500),
            wake(700, 7, 1),
            switch(900, 1, 9, Runnable, 7),
            switch(1_000, 1, 7, Asleep, 0),
        ];
        assert_eq!(absences(&seen_later), [(700, 900, Kind::Preempted, Some(9))]);
        let seen_when_it_leaves = [switch(0, 1, 7, Asleep, 0), wake(700, 7, 1), switch(900, 1, 9, Runnable, 7)];
        assert_eq!(absences(&seen_when_it_leaves), [(700, 900, Kind::Preempted, Some(9))]);
    }

    #[test]
    fn the_cause_of_a_stop_is_known() {
        let stop = Event { ns: 90_000, cpu: 0, what: What::Stop { target: 5, by: 50, comm: 50 } };
        let traced = |leaves| {
            let mut threads = Threads::default();
            threads.follow(7, 5);
            threads.traced_by(5, Occupant { tid: 60, comm: 60 });
            let events = [stop, switch(95, 1, 3, Asleep, 7), switch(100, 1, 7, leaves, 0), wake(900, 7, 1)];
            events.iter().chain(&[switch(902, 1, 0, Runnable, 7)]).for_each(|event| threads.on_event(event));
            threads.taken().iter().map(|one| (one.kind, one.by.map(|by| by.tid))).collect::<Vec<_>>()
        };
        assert_eq!(traced(Stopped), [(Kind::Stopped, Some(50))]);
        assert_eq!(traced(Leaves::Traced), [(Kind::Stopped, Some(60))]);
    }

    #[test]
    fn after_a_loss_nothing_is_said_until_the_thread_runs_again() {
        let events = [
            switch(0, 1, 3, Asleep, 7),
            switch(100, 1, 7, Runnable, 8),
            Event { ns: 500_000, cpu: 1, what: What::Lost },
            switch(900, 1, 8, Runnable, 7),
            switch(1_000, 1, 7, Runnable, 8),
            switch(1_100, 1, 8, Runnable, 7),
        ];
        assert_eq!(absences(&events), [(1_000, 1_100, Kind::Preempted, Some(8))]);
    }

    #[test]
    fn short_pieces_are_summed_up() {
        let mut threads = Threads::default();
        threads.follow(7, 7);
        let events = [switch(0, 1, 3, Asleep, 7), switch(100, 1, 7, Runnable, 8), switch(104, 1, 8, Asleep, 7)];
        events.iter().for_each(|event| threads.on_event(event));
        assert_eq!((threads.taken().len(), threads.short[&7]), (0, (1, 4_000)));
    }
}
