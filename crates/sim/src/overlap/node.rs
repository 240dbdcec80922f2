//! A node: its processors, its processes, and which of them run.
//!
//! No processor is idle while a process is ready. Time advances only between calls; [`Node::due`] gives the time of the
//! next call.

use super::process::{Program, Step, Waiting, Want};
use super::scheduler::Scheduler;
use crate::time::{NEVER, Nanos};

/// Effect of a process on the rest of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Sent { process: usize },
    Sleeps { process: usize, until: Nanos },
    Ended { process: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Asleep,
    /// Blocked on a message, without a processor.
    Waits,
    Ready,
    Runs,
    Ended,
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    program: Program,
    waiting: Waiting,
    nice: i8,
    state: State,
    want: Want,
    /// Messages that have arrived but were not received.
    inbox: u64,
    home: Option<usize>,
    pub used: Nanos,
    pub began: Nanos,
    pub ended: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    running: Option<usize>,
    /// Start of the running process's next charge. Later than now during a context switch or while the processor is
    /// taken away.
    since: Nanos,
    last: Option<usize>,
    taken_until: Nanos,
}

pub(super) struct Node {
    cpus: Vec<Cpu>,
    pub processes: Vec<Process>,
    ready: Vec<usize>,
    scheduler: Scheduler,
    switch: Nanos,
    wake: Nanos,
    /// Effects for the caller to drain.
    pub effects: Vec<Effect>,
}

impl Node {
    pub fn new(scheduler: Scheduler, cpus: usize, switch: Nanos, wake: Nanos) -> Self {
        let cpus = vec![Cpu::default(); cpus];
        Self { cpus, processes: Vec::new(), ready: Vec::new(), scheduler, switch, wake, effects: Vec::new() }
    }

    /// Adds a process, which starts when it is woken. Returns its index.
    pub fn add(&mut self, program: Program, waiting: Waiting, nice: i8) -> usize {
        self.scheduler.add(nice);
        self.processes.push(Process {
            program,
            waiting,
            nice,
            state: State::Asleep,
            want: Want::Burst(0),
            inbox: 0,
            home: None,
            used: 0,
            began: 0,
            ended: None,
        });
        self.processes.len() - 1
    }

    /// Returns the time by which [`Node::advance`] must be called if nothing happens before.
    pub fn due(&self) -> Nanos {
        let due = |cpu: &Cpu| {
            let Some(process) = cpu.running else { return NEVER };
            let slice = self.scheduler.left(process);
            let most = match (self.processes[process].want, self.processes[process].inbox) {
                (Want::Poll(_), 1..) => 0,
                (Want::Poll(left), 0) | (Want::Burst(left), _) => left,
            };
            cpu.since.saturating_add(slice.min(most)).min(NEVER)
        };
        self.cpus.iter().map(due).min().unwrap_or(NEVER)
    }

    /// Whether nothing will happen here until a message arrives: every process has ended, sleeps or waits for one.
    pub fn only_waits(&self) -> bool {
        self.processes.iter().all(|process| match process.state {
            State::Asleep | State::Waits | State::Ended => true,
            State::Ready | State::Runs => {
                matches!(process.want, Want::Poll(left) if left > NEVER / 2) && process.inbox == 0
            }
        })
    }

    /// Advances the node to `now` and performs the steps that are due.
    pub fn advance(&mut self, now: Nanos) {
        self.settle(now);
        for cpu in 0..self.cpus.len() {
            let Cpu { running: Some(process), since, .. } = self.cpus[cpu] else { continue };
            if since > now {
                continue;
            }
            let running = &mut self.processes[process];
            match (running.want, running.inbox) {
                (Want::Burst(0), _) => self.go_on(process, cpu, now),
                (Want::Poll(_), 1..) => {
                    running.inbox -= 1;
                    self.go_on(process, cpu, now);
                }
                (Want::Poll(0), 0) => self.leave(process, cpu, State::Waits, now),
                _ => {}
            }
            if self.cpus[cpu].running == Some(process) && self.scheduler.left(process) == 0 {
                self.schedule(cpu, now);
            }
        }
    }

    /// Handles the start of a process or the end of its sleep.
    pub fn wake(&mut self, process: usize, now: Nanos) {
        self.settle(now);
        if self.processes[process].home.is_none() {
            self.processes[process].began = now;
        }
        self.processes[process].want = Want::Burst(0);
        self.runnable(process, now);
    }

    /// Delivers a message to a process.
    pub fn deliver(&mut self, process: usize, now: Nanos) {
        self.settle(now);
        if self.processes[process].state == State::Waits {
            self.processes[process].want = Want::Burst(self.wake);
            self.runnable(process, now);
        } else {
            self.processes[process].inbox += 1;
        }
    }

    /// Takes a processor for `time` ns ahead of all processes: an idle one if any, otherwise the first.
    pub fn take_processor(&mut self, now: Nanos, time: Nanos) {
        self.settle(now);
        let at = self.cpus.iter().position(|cpu| cpu.running.is_none()).unwrap_or(0);
        let cpu = &mut self.cpus[at];
        cpu.taken_until = now + time;
        cpu.since = cpu.since.max(now) + time;
    }

    fn settle(&mut self, now: Nanos) {
        for cpu in &mut self.cpus {
            let Some(process) = cpu.running else { continue };
            if now > cpu.since {
                let ran = now - cpu.since;
                cpu.since = now;
                self.scheduler.ran(process, ran);
                let process = &mut self.processes[process];
                process.used += ran;
                let (Want::Burst(left) | Want::Poll(left)) = &mut process.want;
                *left = left.saturating_sub(ran);
            }
        }
        self.scheduler.settled();
    }

    /// Executes a running process's next steps until it needs time or gives up its processor.
    fn go_on(&mut self, process: usize, cpu: usize, now: Nanos) {
        loop {
            match self.processes[process].program.next() {
                Step::Compute(0) | Step::Sleep(0) => {}
                Step::Compute(time) => {
                    self.processes[process].want = Want::Burst(time);
                    return;
                }
                Step::Sleep(time) => {
                    self.effects.push(Effect::Sleeps { process, until: now.saturating_add(time).min(NEVER) });
                    return self.leave(process, cpu, State::Asleep, now);
                }
                Step::Send => self.effects.push(Effect::Sent { process }),
                Step::Receive if self.processes[process].inbox > 0 => self.processes[process].inbox -= 1,
                Step::Receive => {
                    let nice = self.processes[process].nice;
                    let unwanted = self.ready.iter().all(|&other| self.processes[other].nice > nice);
                    match self.processes[process].waiting.polls_for(unwanted) {
                        0 => self.leave(process, cpu, State::Waits, now),
                        time => self.processes[process].want = Want::Poll(time),
                    }
                    return;
                }
                Step::End => {
                    self.processes[process].ended = Some(now);
                    self.effects.push(Effect::Ended { process });
                    return self.leave(process, cpu, State::Ended, now);
                }
            }
        }
    }

    fn leave(&mut self, process: usize, cpu: usize, state: State, now: Nanos) {
        self.processes[process].state = state;
        self.scheduler.blocked(process, state == State::Ended);
        self.cpus[cpu].running = None;
        self.schedule(cpu, now);
    }

    fn runnable(&mut self, process: usize, now: Nanos) {
        self.processes[process].state = State::Ready;
        self.ready.push(process);
        self.scheduler.woken(process);
        let home = self.processes[process].home;
        let idle = |cpu: &usize| self.cpus[*cpu].running.is_none();
        if let Some(cpu) = home.filter(idle).or_else(|| (0..self.cpus.len()).find(idle)) {
            return self.schedule(cpu, now);
        }
        let running: Vec<(usize, bool)> =
            self.cpus.iter().enumerate().filter_map(|(at, cpu)| Some((cpu.running?, home == Some(at)))).collect();
        if let Some(cpu) = self.scheduler.preempts(process, &running) {
            self.schedule(cpu, now);
        }
    }

    /// Gives a processor to the process that the scheduler picks.
    fn schedule(&mut self, cpu: usize, now: Nanos) {
        let before = self.cpus[cpu].running;
        let home = |process: usize| (process, self.processes[process].home == Some(cpu));
        let candidates: Vec<(usize, bool)> = before.iter().chain(&self.ready).map(|&process| home(process)).collect();
        if candidates.is_empty() {
            return;
        }
        let chosen = candidates[self.scheduler.pick(&candidates)].0;
        if before == Some(chosen) {
            return;
        }
        self.ready.retain(|&process| process != chosen);
        if let Some(before) = before {
            self.processes[before].state = State::Ready;
            self.ready.push(before);
        }
        let place = &mut self.cpus[cpu];
        let switch = if place.last == Some(chosen) { 0 } else { self.switch };
        place.since = now.max(place.taken_until) + switch;
        (place.running, place.last) = (Some(chosen), Some(chosen));
        self.processes[chosen].state = State::Runs;
        self.processes[chosen].home = Some(cpu);
    }
}
