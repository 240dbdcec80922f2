//! Registration of children: which agents may join a node. An agent may be a child in the platform, one that
//! reconnects, or a late joiner that the platform does not list.

use crosswind_schema::Node;

use crate::action::{Action, TaskBytes};
use crate::agent::Agent;
use crate::frame::Refusal;
use crate::layout::Layout;
use crate::phases::Phase;
use crate::record::AgentEvent;
use crate::settings::{Admission, LATE_JOINERS, RunSettings};

/// Maximum number of agents per node that join without being in the platform.
const MOST_LATE_JOINERS: usize = 10_000;
/// Maximum length of such an agent's name, bytes.
const LONGEST_NAME: usize = 255;

/// A slot that a child may take.
#[derive(Clone, Debug)]
pub struct Slot {
    pub name: String,
    pub number: u32,
    place: u32,
    /// The run's settings with the child, and their layout, if the platform did not have it.
    late_joiner: Option<Box<(RunSettings, Layout)>>,
}

impl<P: TaskBytes> Agent<P> {
    /// Reserves a slot for a child that has proved that it knows the token. `about` holds the rates (JSON) of a child
    /// that the platform does not list. Such a child is numbered from `random`, because these numbers must be unique in
    /// the whole tree and no node counts them all.
    ///
    /// # Errors
    /// The reason why the child is rejected, for its user, and its kind, for its program.
    pub fn reserve_slot(
        &mut self,
        name: &str,
        about: &str,
        random: u32,
        now_ns: u64,
    ) -> Result<Slot, (Refusal, String)> {
        self.now_ns = now_ns;
        let known = self.by_name.get(name).copied();
        if let Some(at) = known.filter(|&at| self.children[at as usize].connected) {
            let beats = (self.run.patience.heartbeat_s * 2.5e9) as u64;
            if now_ns.saturating_sub(self.children[at as usize].received_ns) < beats {
                return Err((Refusal::NameTaken, format!("{name} is here already")));
            }
            self.lose(at, "it came again on another connection", now_ns);
        }
        self.free_slot(name, about, random, known).map_err(|why| (Refusal::Final, why))
    }

    /// Reserves a slot for a name that is not connected. `known`: the last child of this name.
    fn free_slot(&self, name: &str, about: &str, random: u32, known: Option<u32>) -> Result<Slot, String> {
        let own = &self.name;
        if let Some(place) = self.layout.place(name) {
            let node = &self.run.platform.nodes[place as usize];
            if node.parent.as_deref() != Some(own) {
                let whose = node.parent.as_deref().unwrap_or("no node");
                return Err(format!("{name} is a child of {whose}, not of {own}"));
            }
            let number = known.map_or_else(|| self.run.number(place), |at| self.children[at as usize].number);
            return Ok(Slot { name: name.into(), number, place, late_joiner: None });
        }
        if self.children.iter().filter(|child| child.number >= LATE_JOINERS).count() >= MOST_LATE_JOINERS {
            return Err(format!("{MOST_LATE_JOINERS} agents that the platform does not know have joined; no more may"));
        }
        if name.len() > LONGEST_NAME {
            return Err(format!("its name has {} bytes; at most {LONGEST_NAME} are taken", name.len()));
        }
        if about.is_empty() {
            let whose =
                if self.run.part.is_some() { format!("{own} has no child") } else { "the platform has no node".into() };
            return Err(format!("{whose} {name:?}; connect it to its parent, or give its rates, and it may join"));
        }
        let mut node: Node = serde_json::from_str(about).map_err(|error| format!("its rates: {error}"))?;
        (node.name, node.parent) = (name.into(), Some(own.clone()));
        let number = LATE_JOINERS | random;
        let late_joiner = self.run.with_late_joiner(node, number).map_err(|error| error.to_string())?;
        let place = (late_joiner.0.platform.nodes.len() - 1) as u32;
        Ok(Slot { name: name.into(), number, place, late_joiner: Some(Box::new(late_joiner)) })
    }

    /// Returns what a child must know to take a slot. `code`: whether the run's code follows.
    #[must_use]
    pub fn admission(&self, slot: &Slot, code: bool) -> Admission {
        let running = self.run_state.phase != Phase::Gathering;
        let (run, layout) =
            slot.late_joiner.as_deref().map_or((&self.run, &self.layout), |(run, layout)| (run, layout));
        let run = layout.part(run, slot.place, slot.number);
        Admission { run, number: slot.number, parent: self.number, running, code }
    }

    /// Registers a child that has taken its slot and has a link. Returns its number in the policy.
    ///
    pub fn register(&mut self, slot: Slot, now_ns: u64) -> u32 {
        self.now_ns = now_ns;
        let Slot { name, number, place, late_joiner } = slot;
        if let (Phase::Gathering, Some(&at)) = (self.run_state.phase, self.by_name.get(&name)) {
            let state = &mut self.children[at as usize];
            if !state.left && !state.connected {
                (state.connected, state.received_ns) = (true, now_ns);
                return at;
            }
        }
        if let Some(late_joiner) = late_joiner {
            (self.run, self.layout) = *late_joiner;
        }
        let settings = self.layout.child(&self.run, place);
        let child = self.join(place, number, settings, now_ns);
        if self.run_state.phase != Phase::Gathering {
            self.act(Action::Note(format!("{name} joined")));
        }
        let (root_ns, message) = (self.clock.root_ns(now_ns), format!("{name} joined the run"));
        let (code, node, number) = ("agent-joined".into(), Some(name), Some(number));
        self.account.agent_events.push(AgentEvent { root_ns, code, node, number, tasks: None, message });
        child
    }

    /// Whether a child of this name joined without being in the original platform.
    #[must_use]
    pub fn is_late_joiner(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|&at| self.children[at as usize].number >= LATE_JOINERS)
    }
}
