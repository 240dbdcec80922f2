//! Fixture for farm tests: a whole tree in one process, every agent on a thread, over real connections on loopback.
#![allow(dead_code)] // each test program uses only a part

use std::collections::HashMap;
use std::sync::mpsc;
use std::thread::JoinHandle;

use crosswind_access::Access;
use crosswind_access::token::Token;
use crosswind_agent::settings::{RunSettings, Work};
use crosswind_live::LiveError;
use crosswind_live::farm::agent::{AgentConfig, Bare, factory, run_agent};
use crosswind_live::farm::payload::Payload;
use crosswind_live::farm::root::{Delivery, NewTask, Root, RootConfig, RunSummary, Supply, TaskSource};
use crosswind_live::log::Log;
use crosswind_schema::Platform;

pub const TOKEN: &str = "a token for tests only";

pub fn access() -> Access {
    Token::new(TOKEN).unwrap().into()
}

/// Creates a platform from nodes as (name, parent, compute rate), with links of 1000 MB/s.
pub fn platform(nodes: &[(&str, &str, f64)]) -> Platform {
    let nodes: Vec<serde_json::Value> = nodes
        .iter()
        .map(|(name, parent, rate)| {
            let mut node = serde_json::json!({"name": name, "compute_per_s": rate});
            if !parent.is_empty() {
                node["parent"] = (*parent).into();
                node["receive_limit_mb_per_s"] = 1000.0.into();
            }
            node
        })
        .collect();
    let text = serde_json::json!({"schema_version": 1, "name": "test", "node": nodes}).to_string();
    Platform::from_json(text.as_bytes(), "test").unwrap()
}

pub fn settings(platform: Platform, work: Work) -> RunSettings {
    let run = serde_json::json!({
        "platform": platform, "policy": {}, "mean_size_mb": 0.1, "mean_work": 1.0, "work": work,
        "patience": {"heartbeat_s": 0.1, "silence_s": 2.0, "start_s": 10.0},
    });
    serde_json::from_value(run).unwrap()
}

pub struct Tree {
    pub run: RunSettings,
    pub code: Vec<u8>,
}

pub struct Done {
    pub summary: RunSummary,
    pub results: Vec<Delivery>,
}

pub struct List {
    pub tasks: std::vec::IntoIter<(Payload, f64)>,
    pub next: u64,
    pub results: Vec<Delivery>,
}

impl TaskSource for List {
    fn next(&mut self, _now_ns: u64) -> Supply {
        let Some((payload, work)) = self.tasks.next() else { return Supply::Over };
        self.next += 1;
        Supply::Task(NewTask { task: self.next - 1, payload, work, name: Vec::new(), is_batch: false })
    }

    fn deliver(&mut self, results: &mut Vec<Delivery>, _now_ns: u64) {
        self.results.append(results);
    }
}

pub fn agent(parent: &str, name: &str, access: Access) -> (JoinHandle<Result<(), LiveError>>, String) {
    let (told, address) = mpsc::channel();
    let config = AgentConfig {
        parent: parent.into(),
        name: name.into(),
        listen: Some("127.0.0.1:0".into()),
        access,
        about: String::new(),
        spool_directory: std::env::temp_dir(),
        patience_s: 10.0,
        watch_input: None,
        leave: None,
        mark: None,
        status_file: None,
        log: Log::on_stderr(name),
    };
    let run = move || run_agent(config, &mut Bare, &mut |address| told.send(address.to_owned()).unwrap());
    let thread = std::thread::spawn(run);
    (thread, address.recv().unwrap())
}

pub fn root(run: &RunSettings, code: Vec<u8>) -> Root {
    Root::open(RootConfig {
        run: run.clone(),
        listen: "127.0.0.1:0".into(),
        access: access(),
        code,
        spool_directory: std::env::temp_dir(),
        log: Log::on_stderr("root"),
    })
    .unwrap()
}

impl Tree {
    pub fn new(run: RunSettings) -> Self {
        Self { run, code: Vec::new() }
    }

    pub fn run(self, tasks: Vec<(Payload, f64)>) -> Done {
        let root = root(&self.run, self.code);
        let mut addresses = HashMap::new();
        let mut threads = Vec::new();
        for node in &self.run.platform.nodes {
            match &node.parent {
                None => drop(addresses.insert(node.name.clone(), root.address().unwrap())),
                Some(parent) => {
                    let (thread, address) = agent(&addresses[parent], &node.name, access());
                    threads.push(thread);
                    addresses.insert(node.name.clone(), address);
                }
            }
        }
        let mut task_source = List { tasks: tasks.into_iter(), next: 0, results: Vec::new() };
        let own = factory(&self.run, Vec::new(), std::env::temp_dir(), &mut Bare).unwrap();
        let summary = root.run(&mut task_source, own).unwrap();
        for thread in threads {
            thread.join().unwrap().unwrap();
        }
        Done { summary, results: task_source.results }
    }
}
