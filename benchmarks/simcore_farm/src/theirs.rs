//! The same farm by hand on `simcore`: one port, arrival order, two tasks ahead, with and without interference.
//!
//! All nodes are one component, which is the fastest way there is to write it. What follows at the same instant is handled
//! in the order in which it came about, as Crosswind does.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crosswind_schema::plan::Ports;
use crosswind_schema::units::Quantity;
use serde::Serialize;
use simcore::{Event, EventHandler, EventId, Simulation, SimulationContext, cast};

use crate::cases::Case;

const PLACES: u32 = 2;

#[derive(Clone, Serialize)]
struct Computed {
    node: u32,
}

#[derive(Clone, Serialize)]
struct Sent {
    node: u32,
}

#[derive(Clone, Default)]
struct Node {
    parent: u32,
    compute: f64,
    link: f64,
    ir_receive: f64,
    ir_send: f64,
    children: bool,
    root: bool,
    computing: bool,
    ready: u64,
    asked: u32,
    sending: Option<u32>,
    line: VecDeque<u32>,
    remaining: f64,
    since: f64,
    send_loss: f64,
    receive_loss: f64,
    rate: f64,
    end: Option<EventId>,
    dirty: bool,
    done: u64,
}

enum News {
    Asked { node: u32, child: u32, tasks: u32 },
    Arrived { node: u32 },
}

struct Farm {
    context: SimulationContext,
    nodes: Vec<Node>,
    inbox: VecDeque<News>,
    dirty: Vec<u32>,
    size: f64,
    work: f64,
    interference: bool,
}

impl Farm {
    fn settle(&mut self, n: u32) {
        let now = self.context.time();
        let node = &mut self.nodes[n as usize];
        node.remaining -= node.rate * (now - node.since);
        node.since = now;
        if !node.dirty {
            node.dirty = true;
            self.dirty.push(n);
        }
    }

    fn go_on(&mut self, n: u32) {
        let node = &mut self.nodes[n as usize];
        if !node.computing && node.ready > 0 {
            node.ready -= 1;
            node.computing = true;
            self.settle(n);
            self.nodes[n as usize].remaining = self.work;
        }
        let node = &mut self.nodes[n as usize];
        if node.children && node.sending.is_none() && node.ready > 0 {
            if let Some(child) = node.line.pop_front() {
                node.ready -= 1;
                node.sending = Some(child);
                let link = self.nodes[child as usize].link;
                if self.interference {
                    self.losses(n, child, link);
                }
                self.context.emit_self(Sent { node: n }, self.size / link);
            }
        }
        let node = &mut self.nodes[n as usize];
        let held = node.asked + node.ready as u32 + u32::from(node.sending.is_some());
        if !node.root && held < PLACES {
            node.asked += PLACES - held;
            self.inbox.push_back(News::Asked { node: node.parent, child: n, tasks: PLACES - held });
        }
    }

    fn losses(&mut self, n: u32, child: u32, rate: f64) {
        self.settle(n);
        self.settle(child);
        self.nodes[n as usize].send_loss = self.nodes[child as usize].ir_send * rate;
        self.nodes[child as usize].receive_loss = self.nodes[child as usize].ir_receive * rate;
    }

    fn instant(&mut self) {
        while let Some(news) = self.inbox.pop_front() {
            match news {
                News::Asked { node, child, tasks } => {
                    self.nodes[node as usize].line.extend(std::iter::repeat_n(child, tasks as usize));
                    self.go_on(node);
                }
                News::Arrived { node } => {
                    self.nodes[node as usize].asked -= 1;
                    self.nodes[node as usize].ready += 1;
                    self.go_on(node);
                }
            }
        }
        while let Some(n) = self.dirty.pop() {
            let node = &mut self.nodes[n as usize];
            node.dirty = false;
            let rate = node.compute * (1.0 - node.send_loss - node.receive_loss).max(0.0);
            if let Some(end) = node.end {
                if rate == node.rate {
                    continue;
                }
                self.context.cancel_event(end);
                node.end = None;
            }
            node.rate = rate;
            if node.computing && rate > 0.0 {
                let delay = (node.remaining / rate).max(0.0);
                node.end = Some(self.context.emit_self(Computed { node: n }, delay));
            }
        }
    }
}

impl EventHandler for Farm {
    fn on(&mut self, event: Event) {
        cast!(match event.data {
            Computed { node: n } => {
                self.settle(n);
                let node = &mut self.nodes[n as usize];
                node.computing = false;
                node.end = None;
                node.done += 1;
                self.go_on(n);
                self.instant();
            }
            Sent { node: n } => {
                let child = self.nodes[n as usize].sending.take();
                if let Some(child) = child {
                    if self.interference {
                        self.losses(n, child, 0.0);
                    }
                    self.go_on(n);
                    self.inbox.push_back(News::Arrived { node: child });
                }
                self.instant();
            }
        })
    }
}

/// Makespan, and tasks per node.
pub fn run(case: &Case) -> (f64, Vec<u64>) {
    assert!(case.ports == Ports::Single, "one port only");
    let tree = case.platform.tree().expect("a tree");
    let nodes = case.platform.nodes.iter().enumerate().map(|(n, node)| Node {
        parent: tree.parent[n],
        compute: node.compute_per_s.get(),
        rate: node.compute_per_s.get(),
        link: node.receive_limit_mb_per_s.map_or(0.0, Quantity::get),
        ir_receive: node.ir_receive_s_per_mb.get(),
        ir_send: node.ir_send_s_per_mb.get(),
        children: !tree.children(n as u32).is_empty(),
        root: n as u32 == tree.root,
        ..Node::default()
    });
    let mut simulation = Simulation::new(1);
    let farm = Rc::new(RefCell::new(Farm {
        context: simulation.create_context("farm"),
        nodes: nodes.collect(),
        inbox: VecDeque::new(),
        dirty: Vec::new(),
        size: case.tasks.size_mb.get(0),
        work: case.tasks.work.get(0),
        interference: case.interference,
    }));
    simulation.add_handler("farm", farm.clone());
    {
        let mut farm = farm.borrow_mut();
        for n in 0..farm.nodes.len() as u32 {
            farm.go_on(n);
        }
        farm.instant();
        farm.nodes[tree.root as usize].ready = case.tasks.count;
        farm.go_on(tree.root);
        farm.instant();
    }
    simulation.step_until_no_events();
    let tasks = farm.borrow().nodes.iter().map(|node| node.done).collect();
    (simulation.time(), tasks)
}
