//! Which agents may join: a child of the platform, one that comes again, one that the platform does not know.

use crosswind_schema::Node;

use crate::action::{Action, TaskBytes};
use crate::agent::Agent;
use crate::phases::Phase;
use crate::record::AgentEvent;
use crate::settings::{Admission, GUESTS, RunSettings};

/// Agents that the platform does not know, and that may join one node.
const MOST_GUESTS: usize = 10_000;
/// Bytes of such an agent's name.
const LONGEST_NAME: usize = 255;

/// A place that a child may take.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The child's name.
    pub name: String,
    /// What the run is about, with the child.
    pub run: RunSettings,
    pub number: u32,
    place: u32,
}

impl<P: TaskBytes> Agent<P> {
    /// The place of a child that has shown the token. `about`: its rates, for one that the platform does not know; its
    /// number is `random` then, since the numbers of guests differ over the whole tree, and no node counts them all.
    ///
    /// # Errors
    /// Why there is none.
    pub fn seat(&mut self, name: &str, about: &str, random: u32, now_ns: u64) -> Result<Seat, String> {
        self.now_ns = now_ns;
        if let Some(at) = self.children.iter().position(|child| child.name == name && child.connected) {
            let beats = (self.run.patience.heartbeat_s * 2.5e9) as u64;
            if now_ns.saturating_sub(self.children[at].heard_ns) < beats {
                return Err(format!("{name} is here already"));
            }
            self.lose(at as u32, "it came again on another connection", now_ns);
        }
        let own = &self.name;
        if let Some(place) = self.run.place(name) {
            let node = &self.run.platform.nodes[place as usize];
            if node.parent.as_deref() != Some(own) {
                let whose = node.parent.as_deref().unwrap_or("no node");
                return Err(format!("{name} is a child of {whose}, not of {own}"));
            }
            let known = self.children.iter().find(|child| child.name == name);
            let number = known.map_or(place, |child| child.number);
            return Ok(Seat { name: name.into(), run: self.run.clone(), number, place });
        }
        if self.children.iter().filter(|child| child.number >= GUESTS).count() >= MOST_GUESTS {
            return Err(format!("{MOST_GUESTS} agents that the platform does not know have joined; no more may"));
        }
        if name.len() > LONGEST_NAME {
            return Err(format!("its name has {} bytes; at most {LONGEST_NAME} are taken", name.len()));
        }
        if about.is_empty() {
            return Err(format!("the platform has no node {name:?}; give its rates, and it may join"));
        }
        let mut node: Node = serde_json::from_str(about).map_err(|error| format!("its rates: {error}"))?;
        (node.name, node.parent) = (name.into(), Some(own.clone()));
        let run = self.run.with_guest(node).map_err(|error| error.to_string())?;
        let place = (run.platform.nodes.len() - 1) as u32;
        Ok(Seat { name: name.into(), run, number: GUESTS | random, place })
    }

    /// What a child that takes a seat must know.
    #[must_use]
    pub fn admission(&self, seat: &Seat, code: bool) -> Admission {
        let running = self.course.phase != Phase::Gathering;
        Admission { run: seat.run.clone(), number: seat.number, parent: self.number, running, code }
    }

    /// A child has taken its seat, and there is a link to it: its number here.
    ///
    /// # Errors
    /// When the platform is no tree with it.
    pub fn admit(&mut self, seat: Seat, now_ns: u64) -> Result<u32, String> {
        self.now_ns = now_ns;
        let Seat { name, run, number, place } = seat;
        if self.course.phase == Phase::Gathering {
            let at = self.children.iter().position(|child| child.name == name && !child.left && !child.connected);
            if let Some(at) = at {
                (self.children[at].connected, self.children[at].heard_ns) = (true, now_ns);
                return Ok(at as u32);
            }
        }
        let settings = run.of_child(place).map_err(|error| error.to_string())?;
        self.run.platform = run.platform;
        self.run.planned_tasks_per_s = run.planned_tasks_per_s;
        let child = self.join(place, number, settings, now_ns);
        if self.course.phase != Phase::Gathering {
            self.act(Action::Note(format!("{name} joined")));
        }
        let (root_ns, message) = (self.clock.root_ns(now_ns), format!("{name} joined the run"));
        let (code, node, number) = ("agent-joined".into(), Some(name), Some(number));
        self.account.happened.push(AgentEvent { root_ns, code, node, number, tasks: None, message });
        Ok(child)
    }

    /// Whether a child of this name joined that the platform did not know at first.
    #[must_use]
    pub fn is_guest(&self, name: &str) -> bool {
        self.children.iter().any(|child| child.name == name && child.number >= GUESTS)
    }
}
