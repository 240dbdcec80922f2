//! A rank of a parallel program as a process. It executes the operations of its [`Rank`] one after another on one thread.
//!
//! Messages are read from the network and handled while the program communicates or waits, never while it computes. Until
//! then they wait in the kernel, as the packets of the papers wait in the network. The rank never blocks with an unsent
//! message while unread ones wait: while it waits for credits, or for room in a full socket, it handles messages.
//!
//! Not in this module: until when it waits (`condition`); frames of the conductor (`conversation`); when a credit is returned,
//! and the number of credits (`crosswind_policy::window`); what is computed (`crosswind_program`).

use std::collections::VecDeque;
use std::io;

use crosswind_policy::window::{Credits, Moment, ReturnedBy, WindowSettings};
use crosswind_program::{Body, Kind, Op, Program, Rank};

use super::channel::Channel;
use super::condition::Waiting;
use super::mesh::Joined;
use super::processor::{Absence, Processor, Step, Work, cpu_ns};
use super::report::RankReport;
use super::settings::RanksSettings;
use super::wire::{LARGEST, PART, Wire};
use crate::error::LiveError;
use crosswind_linux::{self as linux, Watched, now_ns, watch};

/// Interval between two checks of standard input, ns.
pub(super) const LOOK_NS: u64 = 500_000_000;
/// Interval between two checks whether another rank's processor has come back, ns.
const RETURNS_NS: u64 = 200_000;

/// A frame that was read from the network and not yet handled.
struct Extracted {
    from: u32,
    frame: Wire,
    /// Whether a daemon read it while the program was away.
    elsewhere: bool,
}

/// A rank and its connections.
pub(super) struct RankRuntime<R> {
    pub(super) rank: R,
    pub(super) number: u32,
    pub(super) settings: RanksSettings,
    pub(super) window: WindowSettings,
    pub(super) credits: Credits,
    pub(super) links: Vec<Option<Channel>>,
    pub(super) conductor: Channel,
    pub(super) processor: Processor,
    inbox: VecDeque<Extracted>,
    /// By sender: tags of sends that arrived and were not received by the program yet.
    pub(super) mail: Vec<VecDeque<u32>>,
    /// Own messages that are not answered yet.
    pub(super) open: u64,
    pub(super) stored_bytes: u64,
    pub(super) one_way_sent: u64,
    pub(super) one_way_handled: u64,
    pub(super) one_way_reported: u64,
    pub(super) waiting: Waiting,
    /// Why the rank proceeds by itself although it waits: it computes for a handler, or its processor is away.
    pub(super) busy: Option<&'static str>,
    pub(super) zero_ns: Option<u64>,
    /// Number of completed barriers and store-syncs.
    pub(super) meetings: u64,
    pub(super) released: bool,
    pub(super) finishing: bool,
    /// Frames sent to other ranks, then frames of other ranks handled.
    pub(super) sent: u64,
    pub(super) handled: u64,
    /// Messages and answers handled, including those to itself.
    pub(super) events: u64,
    pub(super) report: RankReport,
    pub(super) watch_input: bool,
    pub(super) looked_ns: u64,
}

impl Joined {
    /// Connects to the other ranks, runs the program's rank, and reports to the conductor.
    ///
    /// # Errors
    /// When the run ends early: another rank is lost, the program is stuck, or it does something invalid.
    pub fn run<P: Program>(mut self, program: &P) -> Result<(), LiveError> {
        if program.ranks() != self.settings.ranks {
            let why = format!("the program has {} ranks, the run {}", program.ranks(), self.settings.ranks);
            self.give_up(&why);
            return Err(LiveError::Setup(why));
        }
        let links = match self.mesh() {
            Ok(links) => links,
            Err(error) => {
                self.give_up(&error.to_string());
                return Err(error);
            }
        };
        let mut runtime = RankRuntime::new(self, links, program)?;
        let result = runtime.run();
        if let Err(error) = &result {
            // If the conductor is gone, the message is not needed.
            let _ = runtime.conductor.send_wire(&Wire::Abort { why: error.to_string() }, 0);
        }
        result
    }
}

impl<R: Rank> RankRuntime<R> {
    fn new<P: Program<Rank = R>>(joined: Joined, links: Vec<Option<Channel>>, program: &P) -> Result<Self, LiveError> {
        let Joined { config, settings, conductor, .. } = joined;
        let window = settings.window();
        let timelines = settings.timelines()?;
        let processor = Processor::new(settings.compute, config.rank, timelines.as_ref(), window.follows());
        Ok(Self {
            rank: program.rank(config.rank),
            number: config.rank,
            window,
            credits: Credits::new(&window),
            mail: links.iter().map(|_| VecDeque::new()).collect(),
            links,
            conductor,
            processor,
            inbox: VecDeque::new(),
            open: 0,
            stored_bytes: 0,
            one_way_sent: 0,
            one_way_handled: 0,
            one_way_reported: 0,
            waiting: Waiting::Nothing,
            busy: None,
            zero_ns: None,
            meetings: 0,
            released: false,
            finishing: false,
            sent: 0,
            handled: 0,
            events: 0,
            report: RankReport { rank: config.rank, pid: std::process::id(), ..RankReport::default() },
            watch_input: config.watch_input,
            looked_ns: now_ns(),
            settings,
        })
    }

    fn run(&mut self) -> Result<(), LiveError> {
        linux::exact_timers();
        self.send_to_conductor(&Wire::Meshed)?;
        let zero_ns = self.begin()?;
        let cpu = cpu_ns();
        while self.step()? {}
        let at_ns = now_ns();
        self.report.cpu_s = (cpu_ns() - cpu) as f64 * 1e-9;
        self.report.done_s = at_ns.saturating_sub(zero_ns) as f64 * 1e-9;
        self.send_to_conductor(&Wire::Done { at_ns })?;
        self.wait(Waiting::Finish)?;
        self.account()
    }

    /// Waits for time 0 and returns it, on the monotonic clock, ns.
    fn begin(&mut self) -> Result<u64, LiveError> {
        let zero_ns = loop {
            match self.zero_ns {
                Some(zero_ns) => break zero_ns,
                None => self.rest(LOOK_NS)?,
            }
        };
        while let left @ 1.. = zero_ns.saturating_sub(now_ns()) {
            self.rest(left)?;
        }
        self.processor.starts_at(zero_ns);
        Ok(zero_ns)
    }

    /// Executes one operation. Returns whether there are more.
    fn step(&mut self) -> Result<bool, LiveError> {
        let op = self.rank.next();
        let events = self.events;
        if !matches!(op, Op::Compute { .. } | Op::Done) {
            self.attend(Some(0))?;
        }
        match op {
            Op::Compute { ns } => self.compute(ns)?,
            Op::Message { to, kind, bytes, body } => self.message(to, kind, bytes, body)?,
            Op::Sync => self.wait(Waiting::Answers)?,
            Op::WaitStored { bytes } => {
                self.wait(Waiting::Stored { bytes })?;
                self.stored_bytes -= bytes;
            }
            Op::Wait => self.wait(Waiting::More { than: events })?,
            Op::StoreSync => {
                self.report_stores()?;
                self.wait(Waiting::StoreSync)?;
            }
            Op::Barrier => {
                self.send_to_conductor(&Wire::Enter { meeting: self.meetings, stores: false, sent: 0, handled: 0 })?;
                self.wait(Waiting::Barrier)?;
            }
            Op::Send { to, tag, bytes } => self.send(to, tag, bytes)?,
            Op::Receive { from, tag } => {
                self.known(from, "receives from")?;
                self.wait(Waiting::Receive { from, tag })?;
            }
            Op::Done => return Ok(false),
        }
        Ok(true)
    }

    // Sending ---------------------------------------------------------------------------------------------------------------

    fn known(&self, other: u32, does: &str) -> Result<(), LiveError> {
        if other < self.settings.ranks && other != self.number {
            return Ok(());
        }
        let (own, ranks) = (self.number, self.settings.ranks);
        Err(LiveError::Setup(format!("rank {own} {does} rank {other}; it must be another one below {ranks}")))
    }

    fn message(&mut self, to: u32, kind: Kind, bytes: u64, body: Body) -> Result<(), LiveError> {
        self.open += u64::from(kind.is_answered());
        self.one_way_sent += u64::from(!kind.is_answered());
        if to == self.number {
            self.report.messages += 1;
            let reply = self.handle(to, kind, bytes, body)?;
            if kind.is_answered() {
                self.answered(to, reply.body);
            }
            return Ok(());
        }
        self.known(to, "sends to")?;
        is_sendable(&body)?;
        self.packets(to, bytes, |packets| Wire::Message { kind, packets, bytes, body })
    }

    fn send(&mut self, to: u32, tag: u32, bytes: u64) -> Result<(), LiveError> {
        self.known(to, "sends to")?;
        self.packets(to, bytes, |packets| Wire::Sent { tag, packets })
    }

    /// Sends the packets of a message as credits allow. The last frame carries the message itself.
    fn packets(&mut self, to: u32, bytes: u64, last: impl FnOnce(u32) -> Wire) -> Result<(), LiveError> {
        let size = u64::from(self.settings.packet_bytes);
        let most = (PART / size).max(1);
        let mut left = self.settings.packets(bytes);
        self.report.messages += 1;
        self.report.packets += left;
        let mut sent_bytes = 0;
        loop {
            let granted = self.granted(to, left.min(most));
            if granted == 0 {
                self.wait(Waiting::Credit { to })?;
                continue;
            }
            left -= granted;
            if left == 0 {
                self.send_wire(to, &last(granted as u32), bytes.saturating_sub(sent_bytes))?;
                return self.wait(Waiting::Room { to });
            }
            sent_bytes += granted * size;
            self.send_wire(to, &Wire::Part { packets: granted as u32 }, granted * size)?;
            self.wait(Waiting::Room { to })?;
        }
    }

    /// Takes credits for at most `wanted` packets. Returns how many may be sent now.
    fn granted(&mut self, to: u32, wanted: u64) -> u64 {
        if !self.window.limits() {
            return wanted;
        }
        let running = self.processor.runs(to);
        let mut granted = 0;
        while granted < wanted && self.credits.take(to, running) {
            granted += 1;
        }
        granted
    }

    fn send_wire(&mut self, to: u32, what: &Wire, bytes: u64) -> Result<(), LiveError> {
        self.sent += 1;
        let Some(link) = &mut self.links[to as usize] else { return Ok(()) };
        match link.send_wire(what, bytes) {
            Ok(()) => Ok(()),
            Err(error) => self.lost(to, &error),
        }
    }

    // Receiving -------------------------------------------------------------------------------------------------------------

    /// Reads and handles arrived messages. Waits for the first of them for at most `wait_ns`; `None` means no limit.
    pub(super) fn attend(&mut self, wait_ns: Option<u64>) -> Result<(), LiveError> {
        self.come_back()?;
        let mut wait_ns = wait_ns.unwrap_or(u64::MAX);
        if self.watch_input || matches!(self.waiting, Waiting::Credit { .. }) && self.window.follows() {
            // No event signals the end of the input or the return of another rank's processor.
            wait_ns = wait_ns.min(if self.window.follows() { RETURNS_NS } else { LOOK_NS });
        }
        self.extract(wait_ns, false)?;
        self.come_back()?;
        while let Some(next) = self.inbox.pop_front() {
            self.deal_with(next)?;
        }
        if self.waiting == Waiting::StoreSync && !self.released && self.one_way_reported != self.one_way_handled {
            self.report_stores()?;
        }
        Ok(())
    }

    /// Reads arrived messages without handling them. `elsewhere` means that a daemon does so, not the program.
    fn extract(&mut self, wait_ns: u64, elsewhere: bool) -> Result<(), LiveError> {
        let others = self.links.iter().map(|link| {
            link.as_ref().map_or_else(|| watch(-1, false, false), |link| watch(link.fd(), true, link.is_full()))
        });
        let own = watch(self.conductor.fd(), true, self.conductor.is_full());
        let mut watched: Vec<_> = std::iter::once(own).chain(others).collect();
        self.spin_then_wait(&mut watched, wait_ns).map_err(LiveError::system("waiting"))?;
        self.look_at_input()?;
        if watched[0].revents != 0 {
            self.on_conductor()?;
        }
        if !elsewhere {
            self.come_back()?;
        }
        for (from, seen) in watched[1..].iter().enumerate().filter(|(_, seen)| seen.revents != 0) {
            if let Err(error) = self.on_frames(from as u32, linux::readable(seen), elsewhere) {
                self.lost(from as u32, &error)?;
            }
        }
        Ok(())
    }

    /// Waits in two phases: polls without giving up the processor, then blocks.
    fn spin_then_wait(&self, watched: &mut [Watched], wait_ns: u64) -> io::Result<()> {
        let spin_ns = wait_ns.min((self.settings.spin_s * 1e9) as u64);
        let until = now_ns().saturating_add(spin_ns);
        while spin_ns > 0 && now_ns() < until {
            linux::wait(watched, Some(0))?;
            if watched.iter().any(|one| one.revents != 0) {
                return Ok(());
            }
        }
        linux::wait(watched, Some(wait_ns - spin_ns))
    }

    /// Waits while the processor is away. Messages that a daemon reads meanwhile are not handled yet.
    fn come_back(&mut self) -> Result<(), LiveError> {
        while let Some(Absence { until_ns, polled }) = self.processor.absence() {
            let begun = now_ns();
            let mut away = Work::Until(until_ns.ok_or_else(|| self.never_comes_back())?);
            self.busy = Some("is away");
            while let Step::Rest(ns) = Processor::step(&mut away) {
                if polled { self.extract(ns.min(LOOK_NS), true)? } else { self.rest(ns)? }
            }
            self.busy = None;
            self.report.away_s += (now_ns() - begun) as f64 * 1e-9;
        }
        Ok(())
    }

    fn never_comes_back(&self) -> LiveError {
        let number = self.number;
        LiveError::Setup(format!("the disturbance takes the processor of rank {number} for good"))
    }

    fn on_frames(&mut self, from: u32, readable: bool, elsewhere: bool) -> io::Result<()> {
        let Some(link) = &mut self.links[from as usize] else { return Ok(()) };
        link.flush()?;
        let filled = if readable { link.fill() } else { Ok(()) };
        while let Some(frame) = link.next()? {
            let moment = if elsewhere { Moment::ExtractedForIt } else { Moment::Extracted };
            let (early, _) = returned(&self.window, &frame, moment, elsewhere);
            if early > 0 {
                self.sent += 1;
                link.send_wire(&Wire::Credit { packets: early }, 0)?;
            }
            self.inbox.push_back(Extracted { from, frame, elsewhere });
        }
        filled
    }

    pub(super) fn look_at_input(&mut self) -> Result<(), LiveError> {
        if self.watch_input && now_ns().saturating_sub(self.looked_ns) >= LOOK_NS {
            self.looked_ns = now_ns();
            if linux::input_has_ended(0) {
                return Err(LiveError::Interrupted);
            }
        }
        Ok(())
    }

    // Handling --------------------------------------------------------------------------------------------------------------

    fn deal_with(&mut self, next: Extracted) -> Result<(), LiveError> {
        let Extracted { from, frame, elsewhere } = next;
        let (alone, with_answer) = returned(&self.window, &frame, Moment::Handled, elsewhere);
        match frame {
            Wire::Part { .. } => {}
            Wire::Sent { tag, .. } => self.mail[from as usize].push_back(tag),
            Wire::Message { kind, bytes, body, .. } => {
                let reply = self.handle(from, kind, bytes, body)?;
                if kind.is_answered() {
                    is_sendable(&reply.body)?;
                    self.report.messages += 1;
                    self.report.packets += self.settings.packets(reply.bytes.into());
                    self.send_wire(from, &Wire::Answer { packets: with_answer, body: reply.body }, reply.bytes.into())?;
                }
            }
            Wire::Answer { packets, body } => {
                self.give_back(from, packets)?;
                if self.open == 0 {
                    return Err(broken(from, "sent an answer that was not requested"));
                }
                self.answered(from, body);
            }
            Wire::Credit { packets } => self.give_back(from, packets)?,
            _ => return Err(broken(from, "says what only the conductor may")),
        }
        if alone > 0 {
            self.send_wire(from, &Wire::Credit { packets: alone }, 0)?;
        }
        self.handled += 1;
        Ok(())
    }

    fn give_back(&mut self, from: u32, packets: u32) -> Result<(), LiveError> {
        if packets > 0 && self.credits.give_back(from, packets) > 0 {
            return Err(broken(from, "gives back more credits than it had"));
        }
        Ok(())
    }

    fn handle(&mut self, from: u32, kind: Kind, bytes: u64, body: Body) -> Result<crosswind_program::Reply, LiveError> {
        let reply = self.rank.handle(from, kind, body);
        self.compute(reply.ns)?;
        self.events += 1;
        self.one_way_handled += u64::from(!kind.is_answered());
        if kind == Kind::Store {
            self.stored_bytes += bytes;
        }
        Ok(reply)
    }

    fn answered(&mut self, from: u32, body: Body) {
        self.open -= 1;
        self.rank.answered(from, body);
        self.events += 1;
    }

    // Computing -------------------------------------------------------------------------------------------------------------

    fn compute(&mut self, ns: u64) -> Result<(), LiveError> {
        if ns == 0 {
            return Ok(());
        }
        let begun = now_ns();
        self.busy = Some("computes");
        let mut work = self.processor.begin(ns).ok_or_else(|| self.never_comes_back())?;
        loop {
            match Processor::step(&mut work) {
                Step::Over => break,
                Step::Worked => self.on_conductor()?,
                Step::Rest(ns) => self.rest(ns)?,
            }
        }
        self.busy = None;
        self.report.busy_s += ns as f64 * 1e-9;
        self.report.away_s += (now_ns() - begun).saturating_sub(ns) as f64 * 1e-9;
        Ok(())
    }

    /// Idles for at most `ns`; handles only frames of the conductor.
    pub(super) fn rest(&mut self, ns: u64) -> Result<(), LiveError> {
        let mut watched = [watch(self.conductor.fd(), true, self.conductor.is_full())];
        linux::wait(&mut watched, Some(ns.min(LOOK_NS))).map_err(LiveError::system("waiting"))?;
        self.look_at_input()?;
        if watched[0].revents != 0 { self.on_conductor() } else { Ok(()) }
    }
}

/// Returns how many credits of a frame's packets are returned at a moment: by themselves, and with an answer.
fn returned(window: &WindowSettings, frame: &Wire, moment: Moment, elsewhere: bool) -> (u32, u32) {
    let (packets, answered) = match frame {
        Wire::Part { packets } | Wire::Sent { packets, .. } => (*packets, false),
        Wire::Message { packets, kind, .. } => (*packets, kind.is_answered()),
        _ => return (0, 0),
    };
    let (mut alone, mut with_answer) = (0, 0);
    // Only the last packet is answered.
    let last = u32::from(answered).min(packets);
    for (count, answer) in [(packets - last, false), (last, true)] {
        match window.returned(moment, answer, elsewhere) {
            ReturnedBy::Nothing => {}
            ReturnedBy::Acknowledgement => alone += count,
            ReturnedBy::Answer => with_answer += count,
        }
    }
    (alone, with_answer)
}

fn is_sendable(body: &Body) -> Result<(), LiveError> {
    match body {
        Body::Words(words) if words.len() * 8 + 64 > LARGEST => {
            let problem = format!("a message with {} words; at most {} travel in one", words.len(), LARGEST / 8 - 8);
            Err(LiveError::Setup(problem))
        }
        _ => Ok(()),
    }
}

fn broken(from: u32, what: &str) -> LiveError {
    LiveError::Lost(format!("rank {from} {what}"))
}
