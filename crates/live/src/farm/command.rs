//! Runs a user's command as the work of a task: `CMD {input} {output}`.
//!
//! The input is a file: the user's own if it is on this host, otherwise a spooled one. The result is what the command
//! writes to `{output}`, or its standard output if the line has no `{output}`. The command fails if its exit status is
//! not 0, or if it exceeds its time or memory limit. The processes that it started end with it:
//! [`crate::farm::task_processes`].

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosswind_agent::settings::TaskLimits;

use crate::farm::executor::{Answer, Executor, Job};
use crate::farm::payload::{Payload, Spool, StoredFile, no_space};
use crate::farm::task_processes::memory::Groups;
use crate::farm::task_processes::{Canceller, End, Wanted};

/// How much of a failing command's stderr is reported: bytes, then lines of those.
const COMPLAINT: usize = 4_000;
const COMPLAINT_LINES: usize = 20;
/// Results up to this size travel in memory.
const IN_MEMORY: u64 = 256 << 10;

pub struct UsersCommand {
    line: String,
    spool: Spool,
    limits: TaskLimits,
    /// Where to create its control groups and their limit in bytes. `None` if no limit is set or no group can be created.
    groups: Option<(Groups, u64)>,
    canceller: Canceller,
}

impl UsersCommand {
    /// Creates an executor for a line with `{input}`, and with `{output}` if the result is a file.
    ///
    /// # Errors
    /// When the line has no `{input}`.
    pub fn new(line: &str, limits: &TaskLimits, directory: &Path) -> Result<Self, String> {
        if !line.contains("{input}") {
            return Err(format!("the command {line:?} has no {{input}}: each task's file would not be used"));
        }
        let spool = Spool::below(directory, 0).map_err(|error| error.to_string())?;
        // A host that cannot limit memory is reported as an event of the run (`NodeRuntime::tell_of_memory`).
        let groups = limits.memory_bytes().and_then(|bytes| Some((Groups::find(bytes).ok()?, bytes)));
        Ok(Self { line: line.into(), spool, limits: limits.clone(), groups, canceller: Canceller::default() })
    }

    fn attempt(&mut self, job: &Job) -> io::Result<Answer> {
        let (input, _kept) = self.input(&job.input)?;
        let output = self.spool.file()?;
        let line = self.line.replace("{input}", &quoted(&input)).replace("{output}", &quoted(&output.path));
        let to_file = self.line.contains("{output}");
        let stdout = if to_file { None } else { Some(File::create(&output.path)?) };
        let complaints = self.spool.file()?;
        let stderr = File::create(&complaints.path)?;
        let group = self.groups.as_ref().map(|(groups, bytes)| groups.make(*bytes)).transpose()?;
        let end = self.canceller.run(Wanted { line: &line, stdout, stderr, limits: &self.limits, group })?;
        match self.failure(end) {
            Some(why) => Ok(self.failed(&why, &complaints.path)),
            None => self.result(output),
        }
    }

    fn failure(&self, end: End) -> Option<String> {
        let limit = |limit: Option<f64>| limit.unwrap_or_default();
        Some(match end {
            End::Exited(status) if status.success() => return None,
            End::Exited(status) => status.to_string(),
            End::OverTime => format!("over its time of {} s (--task-timeout)", limit(self.limits.timeout_s)),
            End::OverMemory => format!("over its memory of {} MB (--task-memory)", limit(self.limits.memory_mb)),
            End::Dropped => "it was ended from outside".into(),
        })
    }

    fn failed(&self, why: &str, complaints: &Path) -> Answer {
        let full = no_space(self.spool.directory()).map_or_else(String::new, |full| format!("; {full}"));
        let said = match last_lines(complaints) {
            Ok(lines) if lines.is_empty() => "; its stderr is empty".into(),
            Ok(lines) => format!("; the end of its stderr:\n{lines}"),
            Err(error) => format!("; its stderr cannot be read: {error}"),
        };
        Answer::failed(format!("{}: {why}{full}{said}", self.line))
    }

    fn result(&self, mut output: StoredFile) -> io::Result<Answer> {
        match std::fs::metadata(&output.path) {
            Ok(found) => output.bytes = found.len(),
            Err(error) => return Ok(Answer::failed(format!("{}: it left no {{output}}: {error}", self.line))),
        }
        if output.bytes <= IN_MEMORY {
            return Ok(Answer::of(Payload::bytes(std::fs::read(&output.path)?)));
        }
        Ok(Answer::of(Payload::File(Arc::new(output))))
    }

    /// Returns the path of the input. A file made for it is removed when the second value is dropped.
    fn input(&mut self, payload: &Payload) -> io::Result<(PathBuf, Option<StoredFile>)> {
        if let Payload::File(file) = payload {
            return Ok((file.path.clone(), None));
        }
        let stored = self.spool.file()?;
        std::fs::write(&stored.path, payload.read()?.as_slice())?;
        Ok((stored.path.clone(), Some(stored)))
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

fn last_lines(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(io::SeekFrom::Start(length.saturating_sub(COMPLAINT as u64)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    Ok(lines[lines.len().saturating_sub(COMPLAINT_LINES)..].join("\n"))
}

/// Quotes a path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str, input: &[u8]) -> Answer {
        limited(line, input, &TaskLimits::default())
    }

    fn limited(line: &str, input: &[u8], limits: &TaskLimits) -> Answer {
        let mut command = UsersCommand::new(line, limits, &std::env::temp_dir()).expect("a command");
        command.run(&Job { task: 0, work: 0.0, input: Payload::bytes(input.to_vec()) })
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
        let said = text(&failed);
        assert!(said.contains("over its time of 0.2 s (--task-timeout)") && said.ends_with("begun"), "{said}");
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
    fn a_large_result_stays_a_file() {
        let large = answer("head -c 1000000 /dev/zero > {output}; : {input}", b"");
        assert!(matches!(&large.output, Payload::File(file) if file.bytes == 1_000_000));
    }
}
