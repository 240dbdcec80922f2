//! Tests of process trees. The processes of a test are found by a word that occurs only in their command lines.

use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::Command;

use super::*;
use crosswind_linux::children::{Usage, exit_now, fork, kill_and_reap, reap};
use crosswind_linux::processes::{all, parent_and_state};

const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a number of seconds to sleep that no other process on this host uses.
fn mark() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("6{:07}{number:02}", std::process::id())
}

fn alive(mark: &str) -> Vec<Pid> {
    let lives = |pid: &Pid| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let has_it = words.split(|byte| *byte == 0).any(|word| word == mark.as_bytes());
        has_it && parent_and_state(*pid).is_some_and(|(_, state)| state != 'Z')
    };
    all().filter(lives).collect()
}

fn wait_until(condition: impl Fn() -> bool, what: &str) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn run(line: &str, limits: &TaskLimits, canceller: &Canceller) -> End {
    end_of(&Wanted { line: line.as_bytes(), direct: None, has_stdout: false, limits, group: None }, canceller)
}

fn end_of(wanted: &Wanted<'_>, canceller: &Canceller) -> End {
    struct Nothing;
    impl Output for Nothing {
        fn stdout(&mut self, _: &[u8]) {}
        fn stderr(&mut self, _: &[u8]) {}
    }
    let slot = canceller.slot().expect("a supervisor");
    slot.map_or(End::Dropped, |mut slot| slot.run(wanted, &mut Nothing).expect("starts"))
}

/// Runs a line, and returns its end and the number of its supervisor.
fn with_supervisor(line: &str, limits: &TaskLimits) -> (End, u32) {
    let path = std::env::temp_dir().join(format!("crosswind-supervisor-{}", mark()));
    let end = run(&format!("echo $PPID > {}; {line}", path.display()), limits, &Canceller::default());
    let report = fs::read_to_string(&path).expect("written");
    fs::remove_file(path).expect("removed");
    (end, report.trim().parse().expect("a number"))
}

/// Does what an agent does, in a process of its own: its supervisors run no other test's commands.
fn holds_alone(check: impl FnOnce()) -> bool {
    let agent = forked(check);
    reap(agent).and_then(|status| status.exit_status()) == Some(0)
}

/// Waits until all supervisors that have reported wait for a command, or have ended.
fn wait_until_ready() {
    use rustix::net::{RecvFlags, recv};
    let has_reported =
        |supervisor: &Supervisor| recv(&supervisor.stream, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT).is_ok();
    wait_until(|| supervisors().done.iter().all(has_reported), "the end of what commands left");
}

/// Forks while no other thread holds the lock of the supervisor list, which would stay locked in the child.
fn forked(work: impl FnOnce()) -> Pid {
    let list = supervisors();
    let unlocked = move || {
        drop(list);
        work();
    };
    // SAFETY: the child does what an agent does, on the only thread that it has.
    unsafe { fork(unlocked) }.expect("a process")
}

fn brief() -> TaskLimits {
    TaskLimits { grace_s: 0.2, ..TaskLimits::default() }
}

#[test]
fn what_a_command_leaves_in_the_background_ends_with_it_and_delays_nothing() {
    let mark = mark();
    // One in its group, one in a session of its own whose parent is gone, one that ignores SIGTERM.
    let line = format!(
        "sleep {mark} & (setsid sleep {mark} &) ; (trap '' TERM; sleep {mark} & wait) & \
         until [ $(grep -lz '^{mark}$' /proc/[0-9]*/cmdline 2> /dev/null | wc -l) -ge 3 ]; do :; done; exit 7"
    );
    let limits = TaskLimits { grace_s: 1.0, ..TaskLimits::default() };
    let End::Exited(status) = run(&line, &limits, &Canceller::default()) else { panic!("not exited") };
    assert_eq!(status.code(), Some(7));
    // The end was reported before the process that ignores SIGTERM ended.
    assert!(!alive(&mark).is_empty());
    wait_until(|| alive(&mark).is_empty(), "the end of the last");
}

#[test]
fn a_command_over_its_time_has_ended_with_its_tree_when_that_is_reported() {
    let mark = mark();
    let limits = TaskLimits { timeout_s: Some(0.3), ..brief() };
    let line = format!("setsid sleep {mark} & sleep {mark}; true");
    assert_eq!(run(&line, &limits, &Canceller::default()), End::OverTime);
    assert_eq!(alive(&mark), Vec::<Pid>::new());
}

#[test]
fn a_command_that_stops_its_supervisor_ends_as_any_other() {
    assert_eq!(
        run("kill -STOP $PPID; exit 3", &brief(), &Canceller::default()),
        End::Exited(ExitStatus::from_raw(3 << 8))
    );
    let limits = TaskLimits { timeout_s: Some(0.2), ..brief() };
    assert_eq!(run("kill -STOP $PPID; sleep 60; true", &limits, &Canceller::default()), End::OverTime);
}

#[test]
fn a_command_that_is_dropped_ends_with_its_tree_and_none_begins_after_it() {
    let mark = mark();
    let canceller = Canceller::default();
    let (other, line) = (canceller.clone(), format!("cat /dev/zero | sleep {mark}"));
    let thread = std::thread::spawn(move || run(&line, &brief(), &other));
    wait_until(|| !alive(&mark).is_empty(), "the command");
    canceller.cancel();
    assert_eq!(thread.join().expect("no panic"), End::Dropped);
    wait_until(|| alive(&mark).is_empty(), "the end of the command");
    assert_eq!(run("exit 0", &brief(), &canceller), End::Dropped);
}

#[test]
fn a_supervisor_takes_the_next_command_once_all_processes_of_the_last_have_ended() {
    assert!(holds_alone(|| {
        let exit_3 = End::Exited(ExitStatus::from_raw(3 << 8));
        let (end, first) = with_supervisor("exit 3", &brief());
        assert_eq!(end, exit_3);
        wait_until_ready();
        // Its limits are those of its own command, and a line may be long.
        let mark = mark();
        let long = format!("trap '' TERM; sleep {mark} & : {}; exit 3", "x".repeat(100_000));
        let limits = TaskLimits { timeout_s: Some(60.0), grace_s: 1e6, ..TaskLimits::default() };
        assert_eq!(with_supervisor(&long, &limits), (exit_3, first));
        // While it ends what that left, another one takes commands.
        let (end, second) = with_supervisor("exit 3", &brief());
        assert_eq!(end, exit_3);
        assert_ne!(second, first);
        wait_until(|| !alive(&mark).is_empty(), "the program in the background"); // until then it is a shell like its parent
        for pid in alive(&mark) {
            kill(pid, Signal::KILL).expect("it ends only here");
        }
        wait_until_ready();
        assert_eq!(alive(&mark), Vec::<Pid>::new());
        let limits = TaskLimits { timeout_s: Some(0.2), ..brief() };
        assert_eq!(with_supervisor("sleep 60; true", &limits).0, End::OverTime);
        wait_until_ready();
        assert_eq!(with_supervisor("kill -9 $PPID; sleep 60", &brief()).0, End::Dropped);
        wait_until_ready();
        assert_eq!(with_supervisor("exit 3", &brief()).0, exit_3);
        wait_for_all(PATIENCE);
        assert!(supervisors().pids.is_empty());
    }));
}

#[test]
fn a_supervisor_that_waits_ends_with_its_agent_even_after_sigkill() {
    let path = std::env::temp_dir().join(format!("crosswind-idle-{}", mark()));
    let line = format!("echo $PPID > {}", path.display());
    let agent = forked(|| {
        run(&line, &brief(), &Canceller::default());
        wait_until_ready();
        kill(std::process::id() as Pid, Signal::KILL).expect("nothing else ends it so");
    });
    reap(agent);
    let supervisor: Pid = fs::read_to_string(&path).expect("written").trim().parse().expect("a number");
    let has_ended = || parent_and_state(supervisor).is_none_or(|(_, state)| state == 'Z');
    wait_until(has_ended, "the end of the supervisor");
    fs::remove_file(path).expect("removed");
}

#[test]
fn a_supervisor_that_is_stopped_ends_with_its_agent_even_after_sigkill() {
    for is_idle in [true, false] {
        let mark = mark();
        let path = std::env::temp_dir().join(format!("crosswind-stopped-{mark}"));
        let begun = path.with_extension("begun");
        let moves = format!("mv {} {}", begun.display(), path.display());
        let rest = if is_idle { "true".into() } else { format!("{moves}; sleep {mark}; true") };
        let line = format!("echo $PPID > {}; {rest}", begun.display());
        let agent = forked(|| {
            run(&line, &brief(), &Canceller::default());
            wait_until_ready();
            if is_idle {
                fs::rename(&begun, &path).expect("renamed");
            }
            std::thread::sleep(PATIENCE);
        });
        wait_until(|| path.exists(), "the command");
        let supervisor: Pid = fs::read_to_string(&path).expect("written").trim().parse().expect("a number");
        let state = || parent_and_state(supervisor).map(|(_, state)| state);
        kill(supervisor, Signal::STOP).expect("it lives");
        wait_until(|| state() == Some('T'), "the stop");
        kill_and_reap(agent);
        wait_until(|| state().is_none_or(|state| state == 'Z'), "the end of the supervisor");
        wait_until(|| alive(&mark).is_empty(), "the end of the command");
        fs::remove_file(path).expect("removed");
    }
}

/// Returns the CPU time of a command that only sleeps, with its shell and supervisor, in per cent of the wall time.
fn cpu_of_a_sleeper(group: impl FnOnce() -> Option<Group>) -> i32 {
    // Runs in its own process, because a process has a single CPU time for all its children.
    let agent = forked(|| {
        let group = group();
        let begun = Instant::now();
        let wanted = Wanted { line: b"sleep 0.8; true", direct: None, has_stdout: false, limits: &brief(), group };
        let end = end_of(&wanted, &Canceller::default());
        wait_for_all(PATIENCE);
        let (wall_s, used) = (begun.elapsed().as_secs_f64(), Usage::of_children());
        let exited = matches!(end, End::Exited(status) if status.success());
        exit_now(if exited { (100.0 * used.cpu().as_secs_f64() / wall_s) as i32 } else { 255 })
    });
    reap(agent).and_then(|status| status.exit_status()).expect("ends by itself")
}

#[test]
fn a_command_that_waits_costs_its_supervisor_no_cpu() {
    assert!(cpu_of_a_sleeper(|| None) < 10, "without a control group");
    const BYTES: u64 = 500_000_000;
    if let Ok(groups) = memory::Groups::find(BYTES) {
        assert!(cpu_of_a_sleeper(|| groups.make(BYTES).ok()) < 10, "with a control group");
    }
}

#[test]
fn the_end_of_the_agent_ends_the_command_even_after_sigkill() {
    let mark = mark();
    let line = format!("sleep {mark}; true");
    let agent = forked(|| {
        run(&line, &brief(), &Canceller::default());
    });
    wait_until(|| !alive(&mark).is_empty(), "the command");
    kill_and_reap(agent);
    wait_until(|| alive(&mark).is_empty(), "the end of the command");
}

#[test]
fn a_command_has_no_descriptor_but_three_and_ignores_no_signal() {
    let path = std::env::temp_dir().join(format!("crosswind-tree-{}", mark()));
    let line = format!("ls /proc/self/fd > {0}; grep SigIgn /proc/self/status >> {0}", path.display());
    let End::Exited(status) = run(&line, &brief(), &Canceller::default()) else { panic!("not exited") };
    assert!(status.success());
    let report = fs::read_to_string(&path).expect("written");
    // The fourth descriptor is the directory that is listed.
    let ignored = report.strip_prefix("0\n1\n2\n3\nSigIgn:\t").expect("no other descriptor").trim();
    // The C library reserves signals 32 and 33.
    assert_eq!(u64::from_str_radix(ignored, 16).expect("a set") & !(3 << 31), 0, "{ignored}");
    fs::remove_file(path).expect("removed");
}

#[test]
fn what_carries_the_mark_of_an_agent_ends_and_nothing_else_does() {
    use crosswind_linux::watchdog::Undo as _;
    let (own, foreign) = (mark(), mark());
    let start = |seconds: &str, value: &str| {
        Command::new("sleep").arg(seconds).env(marked::MARK, value).process_group(0).spawn().expect("sleep is there")
    };
    let (mut one, mut other) = (start(&own, "one"), start(&foreign, "other"));
    // Until exec, a child has the environment of this process.
    wait_until(|| !alive(&own).is_empty() && !alive(&foreign).is_empty(), "both");
    let reaper = std::thread::spawn(move || one.wait());
    marked::Marked::new("one", Duration::from_secs(20), None, None).perform();
    reaper.join().expect("no panic").expect("waited for");
    assert_eq!(alive(&foreign).len(), 1);
    other.kill().expect("ended");
    other.wait().expect("waited for");
}

#[test]
fn the_group_of_a_task_is_named_after_its_agent_not_after_the_agents_number_only() {
    use crosswind_linux::owner::{Owner, name};
    let Ok(groups) = memory::Groups::find(500_000_000) else { return };
    let group = groups.make(500_000_000).expect("as it was tried");
    let found = group.name();
    group.remove();
    let (owner, number) = found.rsplit_once('-').expect("a number at the end");
    assert!(number.parse::<u64>().is_ok(), "{found}");
    assert_eq!(owner, name("crosswind-task"), "{found}");
    assert!(!Owner::of(owner, "crosswind-task").expect("an owner").has_ended());
}
