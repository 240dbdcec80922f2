//! A user's command as the work of a task: `CMD {input} {output}`.
//!
//! The input is a file (the user's own where it lies on this host, a spooled one otherwise). What the command writes to
//! `{output}` is the result; where the line has no `{output}`, what it prints is. It fails when its exit status is not 0.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;

use crate::executor::{Answer, Executor, Job};
use crate::payload::{Payload, Spool, StoredFile};

/// Bytes of a failing command's complaint that are kept.
const COMPLAINT: usize = 4_000;
/// Results up to this size travel in memory.
const IN_MEMORY: u64 = 256 << 10;

/// A command line.
pub struct UsersCommand {
    line: String,
    spool: Spool,
}

impl UsersCommand {
    /// A line with `{input}`, and `{output}` where the result is a file.
    ///
    /// # Errors
    /// When the line has no `{input}`.
    pub fn new(line: &str, directory: &Path) -> Result<Self, String> {
        if !line.contains("{input}") {
            return Err(format!("the command {line:?} has no {{input}}: each task's file would not be used"));
        }
        let spool = Spool::below(directory, 0).map_err(|error| error.to_string())?;
        Ok(Self { line: line.into(), spool })
    }

    fn attempt(&mut self, job: &Job) -> io::Result<Answer> {
        let (input, _kept) = self.input(&job.input)?;
        let output = self.spool.file()?;
        let line = self.line.replace("{input}", &quoted(&input)).replace("{output}", &quoted(&output.path));
        let to_file = self.line.contains("{output}");
        let printed = if to_file { Stdio::null() } else { Stdio::from(File::create(&output.path)?) };
        let complaints = self.spool.file()?;
        let complaint = File::create(&complaints.path)?;
        run(&line, printed, complaint).and_then(|status| self.answer(status, output, &complaints.path))
    }

    fn answer(&self, status: ExitStatus, mut output: StoredFile, complaints: &Path) -> io::Result<Answer> {
        if !status.success() {
            let said = tail(complaints)?;
            let said = if said.trim().is_empty() { "nothing".into() } else { format!("{:?}", said.trim()) };
            return Ok(Answer::failed(format!("{}: {status}; it said {said}", self.line)));
        }
        match std::fs::metadata(&output.path) {
            Ok(found) => output.bytes = found.len(),
            Err(error) => return Ok(Answer::failed(format!("{}: it left no {{output}}: {error}", self.line))),
        }
        if output.bytes <= IN_MEMORY {
            return Ok(Answer::of(Payload::bytes(std::fs::read(&output.path)?)));
        }
        Ok(Answer::of(Payload::File(Arc::new(output))))
    }

    /// The input as a file; what is made for it goes away with the second of the pair.
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
        self.attempt(job).unwrap_or_else(|error| Answer::failed(format!("{}: {error}", self.line)))
    }
}

fn run(line: &str, printed: Stdio, complaint: File) -> io::Result<ExitStatus> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).stdin(Stdio::null()).stdout(printed).stderr(Stdio::from(complaint));
    // SAFETY: prctl is async-signal-safe and touches nothing of ours; the command ends with the thread that waits for it.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64);
            Ok(())
        });
    }
    command.status()
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(io::SeekFrom::Start(length.saturating_sub(COMPLAINT as u64)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// As one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str, input: &[u8]) -> Answer {
        let mut command = UsersCommand::new(line, &std::env::temp_dir()).expect("a command");
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
        assert!(UsersCommand::new("true", &std::env::temp_dir()).is_err());
    }

    #[test]
    fn a_large_result_stays_a_file() {
        let large = answer("head -c 1000000 /dev/zero > {output}; : {input}", b"");
        assert!(matches!(&large.output, Payload::File(file) if file.bytes == 1_000_000));
    }
}
