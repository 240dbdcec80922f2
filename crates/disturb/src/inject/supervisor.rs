//! Runs an injection from the command's start to its end: finds ranks, starts their threads, enforces the time limit,
//! handles requests to stop, and undoes everything.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::InjectConfig;
use super::busy::StandIns;
use super::changes::Changes;
use super::command::{Running, Surroundings};
use super::group::Groups;
use super::hold::Hold;
use super::outcome::{Ending, How, Outcome, RankDone};
use super::priority::{self, Urgency};
use crosswind_linux::freezer::Freezer;
use crosswind_linux::owner;
use crosswind_linux::processes::{Pid, with_descendants};
use crosswind_linux::signals::{Signal, kill};

use super::processes::{Finder, Ranks};
use super::rank::{Target, disturb, locked};
use super::script::{Cause, Script};
use super::start::Start;
use crate::DisturbError;
use crosswind_linux::watchdog::{Undo, Watchdog};
use crosswind_linux::{Waker, Watched, now_ns, readable, wait, watch};

/// Interval between searches for new ranks, ns: while some may be missing, and once that is unlikely.
const LOOK_NS: u64 = 50_000_000;
const LOOK_LATER_NS: u64 = 1_000_000_000;
/// Time after which a launcher has usually started its ranks, ns.
const LAUNCHED_NS: u64 = 3_000_000_000;
/// Time for the command to end by itself, ns: after a Ctrl-C that reached it too, and after a signal from here.
const COURTESY_NS: u64 = 1_000_000_000;
const PATIENCE_NS: u64 = 5_000_000_000;
/// Pause before the command's status is checked again.
const UNHEARD: std::time::Duration = std::time::Duration::from_millis(1);

/// A rank that is being disturbed.
struct Disturbed {
    leaders: Arc<Mutex<Vec<Pid>>>,
    thread: JoinHandle<(Urgency, RankDone)>,
}

/// An injection that has started.
pub(super) struct Begun {
    config: InjectConfig,
    script: Arc<dyn Script>,
    causes: Arc<[Cause]>,
    stop: Arc<(Waker, Mutex<Option<i32>>)>,
    over: Waker,
    undo: Changes,
    /// Present if there is something to undo.
    watchdog: Option<Watchdog>,
    freezer: Arc<Freezer>,
    command: Running,
    began_ns: u64,
    start: Start,
    /// Error in the start file written by the command.
    refused: Option<String>,
    finder: Finder,
    identified_by: Option<&'static str>,
    ranks: BTreeMap<u32, Disturbed>,
    finished: Vec<RankDone>,
    urgency: Urgency,
}

/// Starts the watchdog and the command; holds nothing yet.
pub(super) fn begin(
    config: InjectConfig,
    script: Arc<dyn Script>,
    stop: Arc<(Waker, Mutex<Option<i32>>)>,
) -> Result<Begun, DisturbError> {
    let groups = groups(&config)?;
    let cpus = priority::cpus_of(0).unwrap_or_default();
    let undo = Changes {
        mark: format!("{}-{}", owner::name("").trim_start_matches('-'), now_ns()),
        groups,
        cpus: config.pin.then(|| cpus.clone()),
    };
    let over = Waker::new().map_err(DisturbError::system("creating a waker"))?;
    let start =
        config.start_file.as_deref().map(|file| Start::watched_file(file).map_err(|error| unwatched(file, &error)));
    let start = start.transpose()?;
    let freezer = Arc::new(Freezer::start().map_err(DisturbError::system("the process that freezes"))?);
    let watchdog = undo.any().then(|| Watchdog::start(&undo)).transpose();
    let watchdog = watchdog.map_err(DisturbError::system("the watchdog"))?;
    match start_command(&config, &undo, &cpus, freezer.pid()) {
        Ok((command, began_ns)) => Ok(Begun {
            finder: Finder::new(command.pid, undo.mark.clone()),
            causes: script.causes().into(),
            config,
            script,
            stop,
            over,
            undo,
            watchdog,
            freezer,
            command,
            began_ns,
            start: start.unwrap_or_else(|| Start::at(began_ns)),
            refused: None,
            identified_by: None,
            ranks: BTreeMap::new(),
            finished: Vec::new(),
            urgency: Urgency::Ordinary,
        }),
        Err(error) => {
            undo.perform();
            watchdog.into_iter().for_each(Watchdog::dismiss);
            Err(error)
        }
    }
}

fn unwatched(file: &Path, error: &std::io::Error) -> DisturbError {
    DisturbError::Value {
        field: "start_file".into(),
        value: format!("{}", file.display()),
        permitted: format!("a file that is not there yet, in a directory that is ({error})"),
    }
}

fn groups(config: &InjectConfig) -> Result<Option<Groups>, DisturbError> {
    if config.how != Some(How::Freeze) {
        return Ok(None);
    }
    super::group::permitted()
        .map_err(|why| DisturbError::Setup(format!("control groups cannot be frozen here: {why}")))?;
    Ok(Groups::named())
}

fn start_command(
    config: &InjectConfig,
    undo: &Changes,
    cpus: &[usize],
    tracer: Pid,
) -> Result<(Running, u64), DisturbError> {
    let group = match &undo.groups {
        Some(groups) => {
            groups.make(0).map_err(DisturbError::system("a control group"))?;
            Some(groups.procs(0))
        }
        None => None,
    };
    let around = Surroundings {
        mark: undo.mark.clone(),
        cpu: cpus.first().copied().filter(|_| config.pin),
        group,
        tracer,
        stdout_to_stderr: config.stdout_to_stderr,
    };
    let began_ns = now_ns();
    let name = config.command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    Running::start(&config.command, &around).map(|running| (running, began_ns)).map_err(|error| DisturbError::Value {
        field: "the command".into(),
        value: format!("{name:?}"),
        permitted: format!("a program that can be started ({error})"),
    })
}

impl Begun {
    /// Runs until the command has ended and every change is undone.
    pub(super) fn supervise(mut self) -> Result<Outcome, DisturbError> {
        let ending = self.disturb_until_the_end();
        let mut end_ns = now_ns();
        self.end_the_disturbance();
        self.end_the_command(ending);
        if ending != Ending::Exited {
            end_ns = now_ns();
        }
        self.undo.perform();
        if let Some(watchdog) = self.watchdog.take() {
            watchdog.dismiss();
        }
        let Some(end) = self.command.ended() else {
            return Err(DisturbError::Lost("the command could not be ended: a process waits for the kernel".into()));
        };
        if let Some(why) = self.refused {
            return Err(DisturbError::Setup(why));
        }
        let zero_ns = self.start.zero_ns();
        Ok(Outcome {
            elapsed_s: (end_ns - self.began_ns) as f64 * 1e-9,
            start_s: zero_ns.map(|zero| zero.saturating_sub(self.began_ns) as f64 * 1e-9),
            cpu_s: end.cpu_s,
            status: end.status,
            signal: end.signal,
            ending,
            ranks: std::mem::take(&mut self.finished),
            identified_by: self.identified_by,
            urgency: self.urgency,
        })
    }

    fn disturb_until_the_end(&mut self) -> Ending {
        let limit_ns = self.began_ns.saturating_add(u64::try_from(self.config.limit.as_nanos()).unwrap_or(u64::MAX));
        let mut look_ns = now_ns();
        loop {
            let now = now_ns();
            if now >= limit_ns {
                return Ending::Limit;
            }
            match self.start.listen() {
                Ok(news) => look_ns = if news { now } else { look_ns },
                Err(why) => {
                    self.refused = Some(why);
                    return Ending::Asked(libc::SIGTERM);
                }
            }
            if now >= look_ns {
                let ranks = self.finder.look();
                self.meet(&ranks);
                let all = ranks.identified_by.and(self.config.ranks).map(|count| count as usize);
                let complete = all.map_or(now > self.began_ns + LAUNCHED_NS, |all| ranks.leaders.len() >= all);
                look_ns = now + if complete { LOOK_LATER_NS } else { LOOK_NS };
            }
            let mut watched = self.watched();
            let until = look_ns.min(limit_ns);
            if wait(&mut watched, Some(until.saturating_sub(now_ns()))).is_err() || readable(&watched[0]) {
                return Ending::Exited;
            }
            if readable(&watched[1]) {
                self.stop.0.clear();
                return Ending::Asked(locked(&self.stop.1).unwrap_or(libc::SIGTERM));
            }
            if readable(&watched[2]) || readable(&watched[3]) {
                return Ending::Unwatched;
            }
        }
    }

    fn watched(&self) -> Vec<Watched> {
        let watchdog = self.watchdog.as_ref().map_or(-1, Watchdog::descriptor); // the kernel ignores negative ones
        let others = [self.command.descriptor(), self.stop.0.fd(), watchdog, self.freezer.descriptor()];
        let others = others.map(|fd| watch(fd, true, false));
        others.into_iter().chain(self.start.watched()).collect()
    }

    /// Starts a thread for each new rank, and passes the other threads the current processes of their ranks.
    fn meet(&mut self, found: &Ranks) {
        if found.identified_by != self.identified_by {
            // The command turned out to be a launcher, or a more specific variable now identifies its ranks.
            self.end_the_disturbance();
            self.finished.clear();
            self.over.clear();
            self.identified_by = found.identified_by;
        }
        for (rank, leaders) in
            found.leaders.iter().filter(|(rank, _)| self.config.ranks.is_none_or(|count| **rank < count))
        {
            if let Some(known) = self.ranks.get(rank) {
                let news: Vec<Pid> = {
                    let mut before = locked(&known.leaders);
                    let news = leaders.iter().filter(|pid| !before.contains(pid)).copied().collect();
                    before.clone_from(leaders);
                    news
                };
                self.settle(*rank, &news);
                continue;
            }
            self.settle(*rank, leaders);
            let Some(zero_ns) = self.start.zero_ns() else { continue };
            let leaders = Arc::new(Mutex::new(leaders.clone()));
            let target = Target {
                rank: *rank,
                leaders: leaders.clone(),
                intervals: self.script.intervals(*rank),
                causes: self.causes.clone(),
                asked: self.config.how,
                zero_ns,
                over: self.over.fd(),
                hold: Hold::new(*rank, self.undo.groups.clone(), self.freezer.clone()),
                stand_ins: self.config.busy.then(StandIns::default),
                freezer: self.undo.groups.is_some(),
            };
            let thread = std::thread::spawn(move || disturb(target));
            self.ranks.insert(*rank, Disturbed { leaders, thread });
        }
    }

    /// Moves new processes of a rank to its group and its CPU.
    fn settle(&self, rank: u32, leaders: &[Pid]) {
        if let Some(groups) = &self.undo.groups {
            let made = groups.make(rank);
            for pid in with_descendants(leaders) {
                let _ = made.as_ref().map(|()| groups.take_in(rank, pid)); // a process outside is not frozen, which shows as lateness
            }
        }
        if let Some(cpus) = &self.undo.cpus {
            let cpu = cpus[rank as usize % cpus.len()];
            for pid in with_descendants(leaders) {
                priority::place_all_threads(pid, &[cpu]);
            }
        }
    }

    /// Releases every rank and collects the records of the injections.
    fn end_the_disturbance(&mut self) {
        self.over.wake();
        for (rank, disturbed) in std::mem::take(&mut self.ranks) {
            match disturbed.thread.join() {
                Ok((urgency, done)) => {
                    self.urgency = urgency;
                    self.finished.push(done);
                }
                // Without its record, the rank would count as undisturbed.
                Err(_) => {
                    let why = format!("a fault of Crosswind: the thread that disturbs rank {rank} panicked");
                    self.refused.get_or_insert(why);
                }
            }
        }
    }

    /// Waits for the command's end, and ends the command if `ending` requires it.
    fn end_the_command(&mut self, ending: Ending) {
        match ending {
            Ending::Exited => {
                self.wait_until(u64::MAX, false);
            }
            Ending::Unwatched => self.wait_for_the_end(),
            Ending::Limit if self.config.keep_running => {
                self.undo.perform();
                self.wait_for_the_end();
            }
            Ending::Limit => self.end_it_with(libc::SIGTERM),
            Ending::Asked(signal) => self.end_it_with(signal),
        }
    }

    /// Waits until the command ends, or until a stop is requested.
    fn wait_for_the_end(&mut self) {
        if !self.wait_until(u64::MAX, true) {
            let signal = locked(&self.stop.1).unwrap_or(libc::SIGTERM);
            self.end_it_with(signal);
        }
    }

    /// Waits for its end, until `until_ns` on the monotonic clock. With the flag set, a request to stop ends the wait
    /// too. Returns whether it has ended.
    fn wait_until(&mut self, until_ns: u64, hears: bool) -> bool {
        loop {
            if self.command.ended().is_some() {
                return true;
            }
            let now = now_ns();
            if now >= until_ns {
                return false;
            }
            let mut watched = vec![watch(self.command.descriptor(), true, false)];
            if hears {
                watched.push(watch(self.stop.0.fd(), true, false));
            }
            // At most a second: if the kernel refuses to wait, this still checks often enough.
            let _ = wait(&mut watched, Some((until_ns - now).min(COURTESY_NS)));
            if readable(&watched[0]) && self.command.ended().is_none() {
                // It has ended, but its tracer has not collected its status yet; until then waitpid fails.
                std::thread::sleep(UNHEARD);
                continue;
            }
            if watched.get(1).is_some_and(readable) {
                self.stop.0.clear();
                return false;
            }
        }
    }

    /// Ends the command, by `signal` first and then by SIGKILL, together with processes of it that outlive it.
    fn end_it_with(&mut self, signal: i32) {
        self.undo.perform(); // a stopped process receives no signal
        let members = self.finder.members();
        // Ctrl-C on a terminal has reached the command too, and some launchers treat a second one differently.
        let heard = signal == libc::SIGINT && self.wait_until(now_ns() + COURTESY_NS, false);
        if !heard {
            self.command.signal(signal);
            if !self.wait_until(now_ns() + PATIENCE_NS, false) {
                self.command.signal(libc::SIGKILL);
            }
        }
        self.wait_until(now_ns() + PATIENCE_NS, false);
        for (signal, patience_ns) in [(Signal::TERM, COURTESY_NS), (Signal::KILL, 0)] {
            let left = || members.iter().filter(|pid| super::processes::is_marked(**pid, &self.undo.mark));
            left().for_each(|pid| drop(kill(*pid, signal))); // it may have ended meanwhile
            let until = now_ns() + patience_ns;
            while left().next().is_some() && now_ns() < until {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
    }
}
