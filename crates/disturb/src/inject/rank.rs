//! The thread that disturbs one rank: it sleeps until an interval begins, takes the processor away, and gives it back.

use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::busy::StandIns;
use super::hold::Hold;
use super::outcome::{Done, How, RankDone};
use super::priority::{self, Urgency};
use super::script::{Away, Cause, Intervals, ways};
use crosswind_linux::processes::Pid;
use crosswind_linux::{exact_timers, now_ns, readable, wait, watch};

/// How late an interval may still begin as it was meant; what is later is cut by as much as it is late.
const IN_TIME_NS: u64 = 1_000_000;
/// Two intervals that are so close are one: to give the processor back between them would take longer.
const TOUCHING_NS: u64 = 20_000;
/// How often a thread that computes looks whether all is over.
const LOOK_NS: u64 = 1_000_000;

/// What a rank's thread knows.
pub struct Target {
    pub rank: u32,
    /// Its leading processes, as found last.
    pub leaders: Arc<Mutex<Vec<Pid>>>,
    /// What is to be injected.
    pub intervals: Intervals,
    /// Causes by their place.
    pub causes: Arc<[Cause]>,
    /// A way for every interval; none: what suits its cause.
    pub asked: Option<How>,
    /// Time 0 of the intervals, on the monotonic clock, ns.
    pub zero_ns: u64,
    /// Rings when all is over; it is not silenced.
    pub over: RawFd,
    /// How its processes are held.
    pub hold: Hold,
    /// Threads that compute where the rank did, while it is held; none: the CPUs stay idle.
    pub stand_ins: Option<StandIns>,
    /// Whether that is the freezer.
    pub freezer: bool,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Disturbs a rank until all is over; what was done is in the second of the pair.
pub fn disturb(mut target: Target) -> (Urgency, RankDone) {
    exact_timers();
    let urgency = priority::hurry();
    let mut report = RankDone { rank: target.rank, ..RankDone::default() };
    let mut pinned = None;
    let mut next = target.next(&mut report, 0);
    while let Some((away, how)) = next {
        if !target.sleep_until(away.start_ns) {
            break;
        }
        let result = match how {
            How::Burn => target.burn(&away, &mut pinned, &mut report),
            How::Stop | How::Freeze => target.hold_through(away, how, &mut report),
        };
        match result {
            Ok(after) => next = after.or_else(|| target.next(&mut report, away.end_ns)),
            Err(error) => {
                report.complain(format!("rank {}, {}: {error}", target.rank, how.name()));
                next = target.next(&mut report, away.end_ns);
            }
        }
    }
    let _ = target.hold.let_go(); // said above where it failed; then nothing is held
    report.exposed = target.hold.exposed;
    report.busy = target.stand_ins.as_ref().map(StandIns::cpus).unwrap_or_default();
    report.processes.clone_from(&locked(&target.leaders));
    report.cpus = report.processes.first().and_then(|pid| priority::cpus_of(*pid)).unwrap_or_default();
    (urgency, report)
}

impl Target {
    fn now(&self) -> u64 {
        now_ns().saturating_sub(self.zero_ns)
    }

    /// Whether it is that time, rather than all over.
    fn sleep_until(&self, time_ns: u64) -> bool {
        loop {
            let left = (self.zero_ns + time_ns).saturating_sub(now_ns()); // time 0 itself may lie ahead
            let mut watched = [watch(self.over, true, false)];
            if wait(&mut watched, Some(left)).is_err() || readable(&watched[0]) {
                return false;
            }
            if left == 0 {
                return true;
            }
        }
    }

    fn is_over(&self) -> bool {
        let mut watched = [watch(self.over, true, false)];
        wait(&mut watched, Some(0)).is_err() || readable(&watched[0])
    }

    fn cause(&self, away: &Away) -> Option<&Cause> {
        self.causes.get(usize::from(away.cause))
    }

    /// The next interval that can be injected, with its way. What is over already, or too short, is counted.
    fn next(&mut self, report: &mut RankDone, after_ns: u64) -> Option<(Away, How)> {
        loop {
            let mut away = self.intervals.next()?;
            let how = self.way(&away);
            let now = self.now().max(after_ns);
            if away.end_ns <= now {
                add(&mut report.missed, away.end_ns - away.start_ns);
                continue;
            }
            if now > away.start_ns + IN_TIME_NS {
                report.missed.1 += now - away.start_ns;
                away.start_ns = now;
            }
            if away.end_ns - away.start_ns < how.shortest_ns() {
                add(&mut report.too_short, away.end_ns - away.start_ns);
                continue;
            }
            return Some((away, how));
        }
    }

    fn way(&self, away: &Away) -> How {
        let ways = self.cause(away).map_or_else(|| vec![How::Stop], |cause| ways(cause, self.asked, self.freezer));
        // A CPU can be taken from a rank only where it has no other to go to.
        let burns = ways[0] == How::Burn && self.only_cpu().is_some();
        if burns { How::Burn } else { *ways.last().unwrap_or(&How::Stop) }
    }

    fn only_cpu(&self) -> Option<usize> {
        let leaders = locked(&self.leaders);
        let mut cpus = leaders.iter().filter_map(|pid| priority::cpus_of(*pid));
        match cpus.next()?.as_slice() {
            [only] if cpus.all(|other| other == [*only]) => Some(*only),
            _ => None,
        }
    }

    /// Computes on the rank's CPU until the interval ends.
    fn burn(
        &mut self,
        away: &Away,
        pinned: &mut Option<usize>,
        report: &mut RankDone,
    ) -> std::io::Result<Option<(Away, How)>> {
        let cpu = self.only_cpu();
        if let Some(cpu) = cpu.filter(|cpu| *pinned != Some(*cpu)) {
            priority::place(0, &[cpu])?;
            *pinned = Some(cpu);
        }
        let start_ns = self.now();
        let mut end_ns = start_ns;
        let until = start_ns + (away.end_ns - away.start_ns);
        let mut look_ns = start_ns + LOOK_NS;
        while end_ns < until {
            if end_ns >= look_ns {
                if self.is_over() {
                    break;
                }
                look_ns = end_ns + LOOK_NS;
            }
            std::hint::spin_loop();
            end_ns = self.now();
        }
        report.done.push(done(away, start_ns, end_ns, How::Burn));
        Ok(None)
    }

    /// Holds the rank until the interval ends, and those that touch it; the one that comes after them.
    fn hold_through(
        &mut self,
        mut away: Away,
        how: How,
        report: &mut RankDone,
    ) -> std::io::Result<Option<(Away, How)>> {
        let leaders = locked(&self.leaders).clone();
        let held = self.hold.take(&leaders, self.zero_ns + away.end_ns)?;
        let mut start_ns = held.since_ns.saturating_sub(self.zero_ns);
        if !held.all {
            report.complain(format!("rank {}: some of its threads ran on for more than 20 ms", self.rank));
        }
        if let Some(stand_ins) = &mut self.stand_ins {
            let length_ns = (self.zero_ns + away.end_ns).saturating_sub(now_ns());
            stand_ins.step_in(self.hold.held(&leaders), length_ns);
        }
        loop {
            let next = self.next(report, away.end_ns); // now, since nothing waits for it
            let goes_on = self.sleep_until(away.end_ns);
            if let Some((after, _)) = next.filter(|(after, same)| goes_on && touches(&away, how, after, *same)) {
                let now = self.now();
                report.done.push(done(&away, start_ns, now, how));
                self.hold.take(&leaders, self.zero_ns + after.end_ns)?;
                (away, start_ns) = (after, now);
                continue;
            }
            self.stand_ins.iter().for_each(StandIns::step_back);
            self.hold.let_go()?;
            report.done.push(done(&away, start_ns, self.now(), how));
            return Ok(next);
        }
    }
}

fn touches(away: &Away, how: How, after: &Away, same: How) -> bool {
    same == how && after.start_ns <= away.end_ns + TOUCHING_NS
}

fn add(count: &mut (u64, u64), ns: u64) {
    count.0 += 1;
    count.1 += ns;
}

fn done(away: &Away, start_ns: u64, end_ns: u64, how: How) -> Done {
    Done {
        asked_ns: away.start_ns,
        asked_for_ns: away.end_ns - away.start_ns,
        start_ns,
        end_ns,
        cause: away.cause,
        how,
    }
}
