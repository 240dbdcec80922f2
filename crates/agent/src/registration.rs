//! Registration of children: which agents may join a node. An agent may be a child in the platform, one that
//! reconnects, or a late joiner that the platform does not list.

use crosswind_schema::Node;

use crate::action::{Action, TaskBytes};
use crate::agent::Agent;
use crate::phases::Phase;
use crate::record::AgentEvent;
use crate::settings::{Admission, GUESTS, RunSettings};

/// Maximum number of agents per node that join without being in the platform.
const MOST_GUESTS: usize = 10_000;
/// Maximum length of such an agent's name, bytes.
const LONGEST_NAME: usize = 255;

/// A slot that a child may take.
#[derive(Clone, Debug)]
pub struct Seat {
    pub name: String,
    /// The run's settings, whose platform includes the child.
    pub run: RunSettings,
    pub number: u32,
    place: u32,
}

impl<P: TaskBytes> Agent<P> {
    /// Reserves a slot for a child that has proved that it knows the token. `about` holds the rates (JSON) of a child
    /// that the platform does not list. Such a child is numbered from `random`, because these numbers must be unique in
    /// the whole tree and no node counts them all.
    ///
    /// # Errors
    /// The reason why the child is rejected, for its user.
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

    /// Returns what a child must know to take a slot. `code`: whether the run's code follows.
    #[must_use]
    pub fn admission(&self, seat: &Seat, code: bool) -> Admission {
        let running = self.course.phase != Phase::Gathering;
        Admission { run: seat.run.clone(), number: seat.number, parent: self.number, running, code }
    }

    /// Registers a child that has taken its slot and has a link. Returns its number in the policy.
    ///
    /// # Errors
    /// If the platform with the child is not a tree.
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

    /// Whether a child of this name joined without being in the original platform.
    #[must_use]
    pub fn is_guest(&self, name: &str) -> bool {
        self.children.iter().any(|child| child.name == name && child.number >= GUESTS)
    }
}
