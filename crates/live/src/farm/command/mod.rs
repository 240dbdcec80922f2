//! Runs a user's command as the work of a task: `CMD {input} {output}`.
//!
//! The input is a file with the input's own name, in a directory that belongs to the task; `{output}` is one with the name
//! of the result, in another. Other placeholders: [`line`]. The result is what the command writes to `{output}`, or its
//! standard output if the line has no `{output}`. The command fails if its exit status is not 0, if it leaves no regular
//! file at `{output}`, or if it exceeds its time or memory limit. The processes that it started end with it:
//! [`crate::farm::task_processes`].

mod direct;
mod line;
mod output;
mod workplace;

pub use direct::Direct;
use direct::{Directories, direct};
pub use line::{Values, filled, uses_input};
use output::Printed;
pub use workplace::Workplace;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosswind_agent::settings::TaskLimits;

use crate::farm::executor::{Answer, Executor, Job};
use crate::farm::payload::{Payload, Spool, kind_of, no_space};
use crate::farm::task_processes::memory::Groups;
use crate::farm::task_processes::{Canceller, End, Slot, Wanted};

/// Names of the input and of the result of a task without names.
const UNNAMED: (&[u8], &[u8]) = (b"input", b"output");
/// Results up to this size travel in memory.
const IN_MEMORY: u64 = 256 << 10;
const DROPPED: &str = "it was ended from outside";

pub struct UsersCommand {
    line: String,
    spool: Spool,
    limits: TaskLimits,
    /// Where to create its control groups and their limit in bytes. `None` if no limit is set or no group can be created.
    groups: Option<(Groups, u64)>,
    canceller: Canceller,
    /// Where programs are that need no shell.
    directories: Option<Directories>,
}

impl UsersCommand {
    /// Creates an executor for a line that uses its input, with `{output}` if the result is a file.
    ///
    /// # Errors
    /// When the line has no input.
    pub fn new(line: &str, limits: &TaskLimits, directory: &Path) -> Result<Self, String> {
        if !uses_input(line) {
            return Err(format!("the command {line:?} has no {{input}}: each task's file would not be used"));
        }
        let spool = Spool::below(directory, 0).map_err(|error| error.to_string())?;
        // A host that cannot limit memory is reported as an event of the run (`NodeRuntime::tell_of_memory`).
        let groups = limits.memory_bytes().and_then(|bytes| Some((Groups::find(bytes).ok()?, bytes)));
        let (canceller, directories) = (Canceller::default(), Directories::of_environment());
        Ok(Self { line: line.into(), spool, limits: limits.clone(), groups, canceller, directories })
    }

    fn attempt(&mut self, job: &Job) -> io::Result<Answer> {
        let canceller = self.canceller.clone();
        let Some(mut slot) = canceller.slot()? else { return Ok(self.failed(DROPPED, "")) };
        let place = match slot.workplace().filter(|last| last.is_as_new(&self.spool)) {
            Some(last) => last,
            None => Workplace::new(&mut self.spool)?,
        };
        let answer = self.attempt_in(&place, &mut slot, job);
        slot.end(Some(place).filter(|place| place.is_as_new(&self.spool)));
        answer
    }

    fn attempt_in(&mut self, place: &Workplace, slot: &mut Slot<'_>, job: &Job) -> io::Result<Answer> {
        let (name, called) = job.name.as_deref().and_then(names).unwrap_or(UNNAMED);
        let value = if name.is_empty() { job.input.read()? } else { Arc::default() };
        let (input, name) = if name.is_empty() {
            (Input::value(&value), value.as_slice())
        } else {
            (Input::new(&job.input, &place.input(), name, self.limits.retries)?, name)
        };
        let output = place.output().join(OsStr::from_bytes(called));
        let values = Values {
            input: input.path.as_os_str().as_bytes(),
            output: output.as_os_str().as_bytes(),
            name,
            task: job.task,
        };
        let is_file = self.line.contains("{output}");
        let group = self.groups.as_ref().map(|(groups, bytes)| groups.make(*bytes)).transpose()?;
        let (line, direct) = (&filled(&self.line, &values), self.direct(&values));
        let wanted = Wanted { line, direct, has_stdout: !is_file, limits: &self.limits, group };
        let mut printed = Printed::new(&mut self.spool, job.printer.as_deref());
        let end = slot.run(&wanted, &mut printed)?;
        let (stdout, stderr) = printed.end();
        match self.failure(end) {
            Some(why) => Ok(self.failed(&why, &stderr)),
            None if is_file => self.result(&output),
            None => Ok(Answer::of(stdout?)),
        }
    }

    fn direct(&self, values: &Values<'_>) -> Option<Direct> {
        direct(&self.line, values, self.directories.as_ref()?)
    }

    fn failure(&self, end: End) -> Option<String> {
        let limit = |limit: Option<f64>| limit.unwrap_or_default();
        Some(match end {
            End::Exited(status) if status.success() => return None,
            End::Exited(status) => status.to_string(),
            End::OverTime => format!("over its time of {} s (--task-timeout)", limit(self.limits.timeout_s)),
            End::OverMemory => format!("over its memory of {} MB (--task-memory)", limit(self.limits.memory_mb)),
            End::Dropped => DROPPED.into(),
        })
    }

    fn failed(&self, why: &str, stderr: &str) -> Answer {
        let full = no_space(self.spool.directory()).map_or_else(String::new, |full| format!("; {full}"));
        let stderr = match stderr {
            "" => "; its stderr is empty".into(),
            lines => format!("; the end of its stderr:\n{lines}"),
        };
        Answer::failed(format!("{}: {why}{full}{stderr}", self.line))
    }

    fn result(&mut self, output: &Path) -> io::Result<Answer> {
        let found = match std::fs::symlink_metadata(output) {
            Ok(found) => found,
            Err(error) => return Ok(Answer::failed(format!("{}: it left no {{output}}: {error}", self.line))),
        };
        if let Some(kind) = kind_of(&found) {
            return Ok(Answer::failed(format!("{}: it left {kind} as {{output}}, not a regular file", self.line)));
        }
        let mut kept = self.spool.file()?;
        std::fs::rename(output, &kept.path)?;
        kept.bytes = found.len();
        if kept.bytes <= IN_MEMORY {
            return Ok(Answer::of(Payload::bytes(std::fs::read(&kept.path)?)));
        }
        Ok(Answer::of(Payload::File(Arc::new(kept))))
    }
}

/// Returns the names of a task's input and of its result (its number if it has none), separated by a 0 byte, as commands
/// get them. That of the input is empty if the input is a value. Empty if the task has neither.
#[must_use]
pub fn names_of(input: &Payload, result: &OsStr, task: u64, is_value: bool) -> Vec<u8> {
    let own = match input {
        _ if is_value => OsStr::new(""),
        Payload::File(file) => file.path.file_name().unwrap_or_default(),
        _ if result.is_empty() => return Vec::new(),
        _ => OsStr::from_bytes(UNNAMED.0),
    };
    let number = format!("{task:08}");
    let result = if result.is_empty() { number.as_bytes() } else { result.as_bytes() };
    [own.as_bytes(), b"\0", result].concat()
}

/// Returns the names of a task's input and of its result, if they are names of files. That of the input is empty if the
/// input is a value, which stands for itself.
fn names(both: &[u8]) -> Option<(&[u8], &[u8])> {
    let (input, result) = both.split_at(both.iter().position(|byte| *byte == 0)?);
    let is_name = |name: &[u8]| !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/');
    let result = result[1..].rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    ((input.is_empty() || is_name(input)) && is_name(result) && !result.contains(&0)).then_some((input, result))
}

/// The input of an attempt under its own name.
struct Input {
    path: PathBuf,
    /// Whether the file is the attempt's own, and removed after it.
    is_own: bool,
}

impl Input {
    /// A value that stands for itself.
    fn value(value: &[u8]) -> Self {
        Self { path: PathBuf::from(OsStr::from_bytes(value)), is_own: false }
    }

    /// Puts the input into a directory. A user's own file on this host stays where it is, which is so at a root that
    /// computes.
    fn new(payload: &Payload, directory: &Path, name: &[u8], retries: u32) -> io::Result<Self> {
        if let Payload::File(file) = payload
            && !file.is_ours()
        {
            return Ok(Self { path: file.path.clone(), is_own: false });
        }
        let path = directory.join(OsStr::from_bytes(name));
        match payload {
            // No link: programs such as gzip refuse files that have others. Nothing needs it after the only attempt.
            Payload::File(file) if retries == 0 => std::fs::rename(&file.path, &path)?,
            // A command may change or remove its input before it fails.
            Payload::File(file) => _ = std::fs::copy(&file.path, &path)?,
            other => std::fs::write(&path, other.read()?.as_slice())?,
        }
        Ok(Self { path, is_own: true })
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if self.is_own {
            let _ = std::fs::remove_file(&self.path); // the command may have removed it, or put something else there
        }
    }
}

impl Executor for UsersCommand {
    fn run(&mut self, job: &Job) -> Answer {
        self.attempt(job).unwrap_or_else(|error| {
            let error = no_space(self.spool.directory()).unwrap_or_else(|| error.to_string());
            Answer::failed(format!("{}: {error}", self.line))
        })
    }

    fn canceller(&self) -> Option<Canceller> {
        Some(self.canceller.clone())
    }

    fn ends_by_itself(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str, input: &[u8]) -> Answer {
        limited(line, input, &TaskLimits::default())
    }

    fn limited(line: &str, input: &[u8], limits: &TaskLimits) -> Answer {
        let mut command = UsersCommand::new(line, limits, &std::env::temp_dir()).expect("a command");
        command.run(&Job {
            task: 0,
            work: 0.0,
            input: Payload::bytes(input.to_vec()),
            name: None,
            early: None,
            printer: None,
        })
    }

    fn text(answer: &Answer) -> String {
        String::from_utf8_lossy(&answer.output.read().expect("read")).into_owned()
    }

    #[test]
    fn what_is_written_to_the_output_is_the_result_and_otherwise_what_is_printed() {
        let to_file = answer("tr a-z A-Z < {input} > {output}", b"word");
        assert!(to_file.ok);
        assert_eq!(text(&to_file), "WORD");
        let printed = answer("wc -c < {input}", b"four");
        assert_eq!((printed.ok, text(&printed).trim()), (true, "4"));
    }

    #[test]
    fn a_command_that_fails_says_how_and_what_it_said() {
        let failed = answer("echo no luck with {input} >&2; exit 3", b"");
        assert!(!failed.ok);
        assert!(text(&failed).contains("exit status: 3") && text(&failed).contains("no luck"), "{}", text(&failed));
        assert!(text(&answer("true {input} {output}", b"")).contains("left no {output}"));
        assert!(UsersCommand::new("true", &TaskLimits::default(), &std::env::temp_dir()).is_err());
    }

    #[test]
    fn the_last_lines_of_a_complaint_are_kept_not_only_the_last() {
        let failed = text(&answer("seq 30 >&2; cat {input}; exit 1", b""));
        assert!(failed.contains("the end of its stderr:\n11\n12\n") && failed.ends_with("\n30"), "{failed}");
        assert!(text(&answer("cat {input}; exit 1", b"")).ends_with("its stderr is empty"));
    }

    #[test]
    fn a_command_over_its_time_fails_and_says_so() {
        let limits = TaskLimits { timeout_s: Some(0.2), grace_s: 0.1, ..TaskLimits::default() };
        let failed = limited("echo begun >&2; cat {input}; sleep 600", b"", &limits);
        assert!(!failed.ok);
        let stderr = text(&failed);
        assert!(stderr.contains("over its time of 0.2 s (--task-timeout)") && stderr.ends_with("begun"), "{stderr}");
    }

    #[test]
    fn a_command_over_its_memory_fails_and_says_so() {
        let limits = TaskLimits { memory_mb: Some(32.0), grace_s: 0.1, ..TaskLimits::default() };
        // On a host without control groups nothing limits memory, and the run reports it (tests/live/test_task_trees.py).
        if Groups::find(32 << 20).is_err() {
            return;
        }
        let failed = limited("head -c 200M /dev/zero | tail | wc -c; : {input}", b"", &limits);
        assert!(!failed.ok && text(&failed).contains("over its memory of 32 MB (--task-memory)"), "{}", text(&failed));
        assert!(limited("cat {input}", b"fits", &limits).ok);
    }

    #[test]
    fn input_and_output_have_the_names_that_they_are_given() {
        let mut command = UsersCommand::new(
            "echo {name} {stem} {ext} {number}; basename {}; basename {.}; cat \"{}\"; : {output}",
            &TaskLimits::default(),
            &std::env::temp_dir(),
        )
        .expect("a command");
        let job = |name: &[u8]| Job {
            task: 12,
            work: 0.0,
            input: Payload::bytes(b"words".to_vec()),
            name: Some(name.to_vec().into()),
            early: None,
            printer: None,
        };
        let left = text(&command.run(&job(b"a.txt\0b.out")));
        assert!(left.contains("left no {output}"), "{left}");
        command.line = command.line.replace("{output}", "");
        assert_eq!(text(&command.run(&job(b"a b.txt\0b.out"))), "a b.txt a b txt 000012\na b.txt\na b\nwords");
        command.line = "basename {output} > {output}; : {}".into();
        assert_eq!(text(&command.run(&job(b"a\0sub/b.png"))), "b.png\n");
        // Names that are none are not used.
        for name in [&b"../x\0y"[..], b"x", b".\0y", b"x\0..", b"x\0y\0z"] {
            assert_eq!(text(&command.run(&job(name))), "output\n");
        }
    }

    #[test]
    fn without_a_shell_a_command_gets_and_does_the_same() {
        let attempt = |line: &str, name: &[u8], has_shell: bool| {
            let mut command =
                UsersCommand::new(line, &TaskLimits::default(), &std::env::temp_dir()).expect("a command");
            assert!(command.directories.is_some());
            if has_shell {
                command.directories = None;
            }
            let (input, name) = (Payload::bytes(b"b\na\n".to_vec()), [name, b"\0result"].concat());
            let answer =
                command.run(&Job { task: 5, work: 0.0, input, name: Some(name.into()), early: None, printer: None });
            (answer.ok, text(&answer))
        };
        for line in [
            "sort {}",
            "sort < {input} > {output}",
            "cp {input} {output}",
            "env printf %s/%s/%s/%s/%s {name} {stem} {ext} {number} ./{/}",
            "basename {} .txt",
            "no-such-program {}",
            "/bin/no-such-program {}",
            "cat no-such-file {}",
            "sh -c exit {}",
        ] {
            for name in [&b"a.txt"[..], b"a b", b"$(x)'\"`;*?", b"-n", b"\xff\n~", b"A=1"] {
                // Lines with paths differ: spools have drawn names.
                let same = |(ok, printed): (bool, String)| {
                    let lines = printed.lines().filter(|line| !line.contains("crosswind-"));
                    (ok, lines.map(String::from).collect::<Vec<_>>())
                };
                assert_eq!(same(attempt(line, name, false)), same(attempt(line, name, true)), "{line} {name:?}");
            }
        }
        // A script without an interpreter is the shell's to run.
        let script = std::env::temp_dir().join(format!("crosswind-script-{}", std::process::id()));
        std::fs::write(&script, "echo script of $#\n").expect("written");
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
        let ran = attempt(&format!("{} {{}}", script.display()), b"a", false);
        std::fs::remove_file(&script).expect("removed");
        assert_eq!(ran, (true, "script of 1\n".into()));
    }

    #[test]
    fn a_value_stands_for_itself() {
        let mut command =
            UsersCommand::new("echo {} {name} \"{input}\"", &TaskLimits::default(), &std::env::temp_dir())
                .expect("one");
        command.line = "echo {} {/}; basename {output}; : > {output}; echo {} > {output}".into();
        let input = Payload::bytes(b"a 'b' $c".to_vec());
        let job =
            Job { task: 3, work: 0.0, input, name: Some(b"\x000003".to_vec().into()), early: None, printer: None };
        assert_eq!(text(&command.run(&job)), "a 'b' $c\n");
    }

    #[test]
    fn an_output_that_is_no_regular_file_is_told_at_once() {
        for (line, what) in [
            ("mkfifo {output}; : {input}", "a FIFO"),
            ("mkdir {output}; : {input}", "a directory"),
            ("ln -s /etc/hostname {output}; : {input}", "a link"),
        ] {
            let failed = answer(line, b"");
            assert!(!failed.ok && text(&failed).contains(what), "{}", text(&failed));
        }
    }

    /// Returns all files and directories below one.
    fn walked(directory: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).expect("there").map(|entry| entry.expect("readable").path());
        entries
            .flat_map(|path| if path.is_dir() { [vec![path.clone()], walked(&path)].concat() } else { vec![path] })
            .collect()
    }

    #[test]
    fn nothing_of_a_task_stays() {
        let directory = std::env::temp_dir().join(format!("crosswind-command-{}", std::process::id()));
        std::fs::create_dir(&directory).expect("a directory");
        let mut command =
            UsersCommand::new("cp {input} {output}", &TaskLimits::default(), &directory).expect("a command");
        let job = || Job { task: 0, work: 0.0, input: Payload::bytes(vec![1]), name: None, early: None, printer: None };
        for _ in 0..3 {
            assert!(command.run(&job()).ok);
        }
        // Places for later commands may be left, with nothing in them.
        let spool = std::fs::read_dir(&directory).expect("there").next().expect("a spool").expect("readable").path();
        assert!(walked(&spool).iter().all(|path| path.is_dir()));
        command.line = "cp {input} {output}.more; : > {output}".into();
        assert!(command.run(&job()).ok);
        assert!(walked(&spool).iter().all(|path| path.is_dir()));
        drop(command);
        assert_eq!(std::fs::read_dir(&directory).expect("there").count(), 0);
        std::fs::remove_dir(&directory).expect("empty");
    }

    #[test]
    fn a_large_result_is_a_file_whether_it_is_written_or_printed() {
        for line in ["seq 200000 > {output}; : {input}", "seq 200000; : {input}"] {
            let large = answer(line, b"");
            assert!(matches!(&large.output, Payload::File(file) if file.bytes == 1_288_895), "{line}");
            assert_eq!(text(&large).lines().last(), Some("200000"));
        }
        assert_eq!(text(&answer("seq 3; cat {input}", b"4")), "1\n2\n3\n4");
    }
}
