//! Tests of a farm and of filters whose ends have certificates, and of an impostor that poses as a parent and sends code.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::tree::{List, agent, platform, settings};
use crosswind_access::authority::{Node, make};
use crosswind_access::greeting::{GREETING_BYTES, Greeting};
use crosswind_access::token::{End, Transcript};
use crosswind_access::{Access, Transport};
use crosswind_agent::frame::{Frame, LARGEST_FRAME, decode};
use crosswind_agent::settings::{Admission, RunSettings, Work};
use crosswind_live::LiveError;
use crosswind_live::farm::agent::{AgentConfig, Bare, ExecutorFactories, factory, run_agent};
use crosswind_live::farm::executor::ExecutorFactory;
use crosswind_live::farm::payload::Payload;
use crosswind_live::farm::root::{Root, RootConfig};
use crosswind_live::log::Log;
use crosswind_live::protocol::PROTOCOL;

struct Set(PathBuf);

impl Set {
    /// Creates certificates for nodes, each with whether it may send code to others.
    fn new(nodes: &[(&str, bool)]) -> Self {
        let name = u64::from_ne_bytes(crosswind_access::token::random().unwrap());
        let path = std::env::temp_dir().join(format!("crosswind-farm-{name:016x}"));
        let node = |(name, parent): &(&str, bool)| Node { name: (*name).into(), hosts: Vec::new(), parent: *parent };
        make(&path, &nodes.iter().map(node).collect::<Vec<_>>(), 1).unwrap();
        Self(path)
    }

    fn of(&self, node: &str) -> Access {
        Access::of(None, Some(&self.0.join(node))).unwrap()
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn child(parent: &str, name: &str, access: Access) -> AgentConfig {
    AgentConfig {
        parent: parent.into(),
        name: name.into(),
        listen: None,
        access,
        about: String::new(),
        spool_directory: std::env::temp_dir(),
        patience_s: 3.0,
        watch_input: None,
        leave: None,
        mark: None,
        status_file: None,
        log: Log::on_stderr(name),
    }
}

fn task_source(payloads: Vec<Payload>) -> List {
    let tasks = payloads.into_iter().map(|payload| (payload, 1.0)).collect::<Vec<_>>();
    List { tasks: tasks.into_iter(), next: 0, results: Vec::new() }
}

/// Factories that record whether it was called, and thus given code.
struct Wary(Arc<AtomicBool>);

impl ExecutorFactories for Wary {
    fn factory(&mut self, _: &Work, _: Vec<u8>) -> Result<ExecutorFactory, LiveError> {
        self.0.store(true, Ordering::Relaxed);
        Err(LiveError::Setup("it was given code".into()))
    }
}

fn root(run: &RunSettings, access: Access) -> Root {
    Root::open(RootConfig {
        run: run.clone(),
        listen: "127.0.0.1:0".into(),
        access,
        code: vec![7; 3_000_000],
        spool_directory: std::env::temp_dir(),
        log: Log::on_stderr("root"),
    })
    .unwrap()
}

#[test]
fn a_tree_with_certificates_computes_what_it_is_given_in_memory_and_in_files() {
    let set = Set::new(&[("r", true), ("a", true), ("b", false)]);
    let line = "sh -c 'cat {input} | wc -c'";
    let work = Work::Command { line: line.into() };
    let mut run = settings(platform(&[("r", "", 0.0), ("a", "r", 1.0), ("b", "a", 1.0)]), work.clone());
    run.sizes.spool_over_bytes = 1_000_000;
    let farm = root(&run, set.of("r"));
    let address = farm.address().unwrap();
    let sizes: Vec<usize> = (0..30).map(|at| if at % 5 == 0 { 3_000_000 + at } else { 1000 * at }).collect();
    let file = set.0.join("input");
    std::fs::write(&file, vec![b'x'; 5_000_000]).unwrap();
    let mut payloads: Vec<Payload> = sizes.iter().map(|&size| Payload::bytes(vec![b'x'; size])).collect();
    payloads.push(Payload::file(Path::new(&file)).unwrap());
    let (inner, below) = agent(&address, "a", set.of("a"));
    let (leaf, _) = agent(&below, "b", set.of("b"));
    let mut task_source = task_source(payloads);
    let own = factory(&run, Vec::new(), std::env::temp_dir(), &mut Bare).unwrap();
    farm.run(&mut task_source, own).unwrap();
    inner.join().unwrap().unwrap();
    leaf.join().unwrap().unwrap();
    let expected = sizes.iter().copied().chain([5_000_000]);
    for (task, size) in expected.enumerate() {
        let result = task_source.results.iter().find(|result| result.task == task as u64).unwrap();
        let told = String::from_utf8(result.payload.read().unwrap().to_vec()).unwrap();
        assert_eq!(told.trim(), size.to_string(), "task {task}");
    }
}

#[test]
fn a_child_without_its_own_certificate_is_not_let_in() {
    let (set, other) = (Set::new(&[("r", true), ("a", false), ("b", false)]), Set::new(&[("a", false)]));
    let mut run = settings(platform(&[("r", "", 1.0), ("a", "r", 1.0)]), Work::Noop);
    run.patience.start_s = 2.0;
    let farm = root(&run, set.of("r"));
    let address = farm.address().unwrap();
    let refused: Vec<String> = std::thread::scope(|scope| {
        let joining = [set.of("b"), other.of("a"), Access::of(Some("a token of some length"), None).unwrap()];
        let joining = joining.map(|access| {
            let address = address.clone();
            scope.spawn(move || run_agent(child(&address, "a", access), &mut Bare, &mut |_| ()))
        });
        farm.run(&mut task_source(vec![Payload::bytes(vec![1])]), None).unwrap();
        joining.map(|handshake| handshake.join().unwrap().expect_err("not let in").to_string()).to_vec()
    });
    assert!(refused[0].contains("does not name \"a\""), "{refused:?}");
    assert!(refused[1].contains("certificate"), "{refused:?}");
    assert!(refused[2].contains("TLS"), "{refused:?}");
}

/// Poses as a parent that accepts every child, and sends code.
fn impostor(listener: &TcpListener, access: &Access, run: &RunSettings) {
    let (stream, _) = listener.accept().unwrap();
    let Ok(mut stream) = Transport::accepted(stream, access.tls()) else { return };
    let _ = stream.shake_hands();
    let mut bytes = [0; GREETING_BYTES];
    if stream.read_exact(&mut bytes).is_err() {
        return; // the child rejects this parent
    }
    // The impostor answers even an invalid greeting, such as that of a child without TLS.
    let caller = Greeting::decode(&bytes, PROTOCOL).ok().flatten().map_or([0; 32], |greeting| greeting.nonce);
    let listener = [9; 32];
    let transcript =
        Transcript { protocol: PROTOCOL, caller, listener, channel: stream.channel().expect("shaken hands") };
    let admission = Admission { run: run.clone(), number: 1, parent: 0, running: false, code: true };
    let settings = serde_json::to_vec(&admission).unwrap();
    let mut out = Greeting { word: 0, nonce: listener }.encode(PROTOCOL).to_vec();
    let proof = access.proof(&transcript, End::Listener, "a");
    Frame::Welcome { proof, settings }.encode(0, &mut out);
    Frame::Code { last: true, piece: b"cos\nsystem\n(S'touch /tmp/owned'\ntR.".to_vec() }.encode(0, &mut out);
    let _ = stream.write_all(&out);
    // Reads whatever the child sends until it closes the connection.
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard);
    let frame = decode(&heard, LARGEST_FRAME);
    assert!(
        !matches!(frame, Ok(Some(decoded)) if matches!(decoded.frame, Frame::Ready { .. })),
        "it is ready to compute"
    );
}

#[test]
fn a_parent_that_is_none_delivers_no_code() {
    let (set, other) =
        (Set::new(&[("r", true), ("a", false), ("thief", false), ("x", true)]), Set::new(&[("r", true)]));
    let run = settings(platform(&[("r", "", 0.0), ("a", "r", 1.0)]), Work::Callable);
    let token = |text: &str| Access::of(Some(text), None).unwrap();
    let cases = [
        ("without the token", token("the right token of all"), Access::default(), "does not know the token"),
        (
            "with another token",
            token("the right token of all"),
            token("another token, as long"),
            "does not know the token",
        ),
        ("of another authority", set.of("a"), other.of("r"), "not to be trusted"),
        ("with a leaf's certificate", set.of("a"), set.of("thief"), "is not a parent's"),
        ("with another parent's certificate", set.of("a"), set.of("x"), "does not name \"r\""),
        ("without a certificate", set.of("a"), token("the right token of all"), "TLS"),
    ];
    for (case, own, others, expected) in cases {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let given = Arc::new(AtomicBool::new(false));
        let said = std::thread::scope(|scope| {
            scope.spawn(|| impostor(&listener, &others, &run));
            let mut factories = Wary(Arc::clone(&given));
            run_agent(child(&address, "a", own), &mut factories, &mut |_| ()).expect_err(case).to_string()
        });
        assert!(said.contains(expected), "{case}: {said}");
        assert!(!given.load(Ordering::Relaxed), "{case}: the code was taken");
    }
}
