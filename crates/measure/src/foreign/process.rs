//! A foreign process: its start, line-by-line requests, stop and continue, and end.
//!
//! It has a process group of its own and is killed when the thread that started it ends. An unsolicited line, or the
//! end of its output, fails the running block. A stopped process handles no request and sees no end of input.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crosswind_linux as linux;
use crosswind_linux::signals::{Signal, kill_group};

use super::lines::{self, Answer, Compute, Hello, LONGEST_LINE, Request};
use crate::error::MeasureError;

/// Longest wait for an answer: a runtime that starts on a contended CPU takes seconds.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Time limit for the process to end after the request to quit.
pub const TO_END: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(5);
/// Bytes of its last stderr output that are shown.
const COMPLAINT: usize = 400;

enum Output {
    Line(Vec<u8>),
    TooLong,
    Ended,
}

/// A running process that should speak the protocol.
pub struct Process {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<Output>,
    complaint: Arc<Mutex<VecDeque<u8>>>,
    reaped: bool,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts a command on these CPUs (empty: any), at a nice level.
    ///
    /// # Errors
    /// When there is no such command, or a CPU or the nice level is refused.
    pub fn start(
        words: &[String],
        environment: &[(String, String)],
        cpus: &[u32],
        nice: i32,
    ) -> Result<Self, MeasureError> {
        let name = words.first().cloned().unwrap_or_default();
        let mut command = Command::new(&name);
        command.args(&words[1..]).envs(environment.iter().map(|(key, value)| (key, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let cpus = cpus.to_vec();
        // SAFETY: all calls are async-signal-safe and touch no memory but the list of CPUs, allocated before the
        // fork.
        unsafe {
            command.pre_exec(move || {
                linux::end_with_starter();
                linux::set_affinity(0, &cpus)?;
                if nice != 0 { linux::set_nice(0, nice) } else { Ok(()) }
            });
        }
        let failed = |why: String| MeasureError::Foreign { probe: name.clone(), why };
        let mut child = command.spawn().map_err(|error| failed(format!("does not start: {error}")))?;
        let (saying, output) = channel();
        let complaint = Arc::new(Mutex::new(VecDeque::new()));
        if let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) {
            let kept = Arc::clone(&complaint);
            let listen = std::thread::Builder::new().name("cw-probe-out".into()).spawn(move || listen(output, &saying));
            let note = std::thread::Builder::new().name("cw-probe-err".into()).spawn(move || note(errors, &kept));
            if let Err(error) = listen.and(note) {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(format!("cannot be listened to: {error}")));
            }
        }
        let input = child.stdin.take();
        Ok(Self { name, child, input, output, complaint, reaped: false, status: None })
    }

    #[must_use]
    pub fn number(&self) -> i32 {
        self.child.id() as i32
    }

    #[must_use]
    pub fn wrong(&self, why: &str) -> MeasureError {
        let complaints = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        let complaints: Vec<u8> = complaints.iter().copied().collect();
        let complaints = String::from_utf8_lossy(&complaints);
        let complaints: String = complaints.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let why = if complaints.is_empty() { why.to_owned() } else { format!("{why}; it said: {complaints}") };
        MeasureError::Foreign { probe: self.name.clone(), why }
    }

    /// Sends a request and returns the words of its answer.
    ///
    /// # Errors
    /// When it has ended, answers `error` or an invalid line, or does not answer in time.
    pub fn ask(&mut self, request: &Request<'_>, patience: Duration) -> Result<Vec<String>, MeasureError> {
        let line = request.to_string();
        match self.answer(&line, patience)? {
            Answer::Ok(words) => Ok(words),
            Answer::Error(why) => Err(self.wrong(&format!("answers `{}` with an error: {why}", verb(&line)))),
        }
    }

    /// Sends any line and returns the answer, `ok` or `error`.
    ///
    /// # Errors
    /// When it has ended, its answer is neither, or it does not answer in time.
    pub fn answer(&mut self, line: &str, patience: Duration) -> Result<Answer, MeasureError> {
        self.check()?;
        let verb = verb(line);
        if self.say(line).is_err() {
            return Err(self.end_of_it());
        }
        match self.output.recv_timeout(patience) {
            Ok(Output::Line(output)) => {
                Answer::parse(&output).map_err(|why| self.wrong(&format!("answers `{verb}` wrongly: {why}")))
            }
            Ok(Output::TooLong) => Err(self.wrong(&too_long())),
            Ok(Output::Ended) | Err(RecvTimeoutError::Disconnected) => Err(self.end_of_it()),
            Err(RecvTimeoutError::Timeout) => {
                Err(self.wrong(&format!("does not answer `{verb}` within {} s", patience.as_secs())))
            }
        }
    }

    /// Writes one line unchanged.
    ///
    /// # Errors
    /// When its input is closed.
    pub fn say(&mut self, line: &str) -> std::io::Result<()> {
        let input = self.input.as_mut().ok_or(std::io::ErrorKind::BrokenPipe)?;
        input.write_all(format!("{line}\n").as_bytes())
    }

    /// Performs the first exchange.
    ///
    /// # Errors
    /// As [`Process::ask`], or when the answer has the wrong form.
    pub fn hello(&mut self, counter: &Path) -> Result<Hello, MeasureError> {
        let counter = counter.to_string_lossy();
        let words = self.ask(&Request::Hello { counter: &counter }, PATIENCE)?;
        Hello::parse(&words).map_err(|why| self.wrong(&why))
    }

    /// Starts its computation and returns the steps per unit of work.
    ///
    /// # Errors
    /// As [`Process::hello`].
    pub fn compute(&mut self, work: &Compute) -> Result<f64, MeasureError> {
        let words = self.ask(&Request::Compute(work), PATIENCE)?;
        lines::steps_per_unit(&words).map_err(|why| self.wrong(&why))
    }

    /// Makes it connect, and returns the local port of the connection.
    ///
    /// # Errors
    /// As [`Process::hello`].
    pub fn flow(&mut self, request: &Request<'_>) -> Result<u16, MeasureError> {
        let words = self.ask(request, PATIENCE)?;
        lines::local_port(&words).map_err(|why| self.wrong(&why))
    }

    /// Makes it close its connections.
    ///
    /// # Errors
    /// As [`Process::hello`].
    pub fn close(&mut self) -> Result<(), MeasureError> {
        let words = self.ask(&Request::Close, PATIENCE)?;
        lines::nothing("close", &words).map_err(|why| self.wrong(&why))
    }

    /// Checks that it is running and has sent no unsolicited line.
    ///
    /// # Errors
    /// When it has ended or sent one.
    pub fn check(&mut self) -> Result<(), MeasureError> {
        match self.output.try_recv() {
            Err(TryRecvError::Empty) => Ok(()),
            Err(TryRecvError::Disconnected) | Ok(Output::Ended) => Err(self.end_of_it()),
            Ok(Output::TooLong) => Err(self.wrong(&too_long())),
            Ok(Output::Line(line)) => Err(match Answer::parse(&line) {
                Ok(Answer::Error(why)) => self.wrong(&format!("failed: {why}")),
                _ => self.wrong(&format!("says a line that was not asked for: {}", lines::shown(&line))),
            }),
        }
    }

    #[must_use]
    pub fn ended(&self) -> bool {
        linux::processes::parent_and_state(self.number()).is_none_or(|(_, state)| matches!(state, 'Z' | 'X'))
    }

    /// Stops (SIGSTOP) or continues (SIGCONT) its process group.
    pub fn hold(&self, still: bool) {
        self.signal(if still { Signal::STOP } else { Signal::CONT });
    }

    fn signal(&self, signal: Signal) {
        if !self.reaped {
            let _ = kill_group(self.number(), signal); // the group of a child that has not been reaped
        }
    }

    fn end_of_it(&mut self) -> MeasureError {
        let status = self.wait(TO_END);
        // Its last stderr output may still be on its way.
        std::thread::sleep(LOOK);
        let how = match status {
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("it ended with exit status {code}"),
                (None, Some(signal)) => format!("it was ended by signal {signal}"),
                (None, None) => "it ended".into(),
            },
            None => "it closed its output".into(),
        };
        self.wrong(&how)
    }

    /// Waits for its end, then kills what is left of its process group.
    fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        while !self.ended() && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
        if !self.ended() {
            return None;
        }
        self.signal(Signal::KILL); // everything left in its group; it is a zombie, so the id is still its own
        self.reaped = true;
        self.status = self.child.wait().ok();
        self.status
    }

    /// Closes its input without a request and waits for its end. Returns whether it ended by itself.
    pub fn close_input(&mut self) -> bool {
        self.input = None;
        self.wait(TO_END).is_some()
    }

    /// Its exit status, once it has ended.
    #[must_use]
    pub fn status(&self) -> Option<ExitStatus> {
        self.status
    }

    /// Asks it to quit, and kills it after [`TO_END`]. Returns whether it ended by itself.
    pub fn quit(&mut self) -> bool {
        if self.reaped {
            return true;
        }
        self.hold(false);
        let _ = self.say(&Request::Quit.to_string()); // a closed input shows as its end
        self.input = None;
        if self.wait(TO_END).is_some() {
            return true;
        }
        self.signal(Signal::KILL);
        self.reaped = true;
        let _ = self.child.wait();
        false
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.quit();
    }
}

fn verb(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

fn too_long() -> String {
    format!("says a line of more than {LONGEST_LINE} bytes")
}

/// Forwards each line; buffers no more than the longest permitted one.
fn listen(output: impl Read, saying: &Sender<Output>) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        let read = output.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', &mut line);
        let next = match read {
            Ok(0) | Err(_) => Output::Ended,
            Ok(_) if line.last() == Some(&b'\n') => {
                line.pop();
                Output::Line(line)
            }
            Ok(read) if read < LONGEST_LINE => Output::Ended, // truncated within a line
            Ok(_) => Output::TooLong,
        };
        let last = !matches!(next, Output::Line(_));
        if saying.send(next).is_err() || last {
            // A process must not block on output that is not read.
            let _ = std::io::copy(&mut output, &mut std::io::sink());
            return;
        }
    }
}

/// Keeps the tail of its stderr output.
fn note(mut errors: impl Read, kept: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = errors.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&buffer[..read]);
        let over = kept.len().saturating_sub(COMPLAINT);
        kept.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Process {
        Process::start(&["/bin/sh".into(), "-c".into(), script.into()], &[], &[], 0).expect("a shell")
    }

    #[test]
    fn a_process_that_answers_is_asked_and_told_to_end() {
        let mut process = shell("read l; echo ok 1 sh 1; read l; echo ok 2.5; read l");
        assert_eq!(process.hello(Path::new("/dev/null")).expect("as it should be").name, "sh");
        assert_eq!(process.compute(&Compute::Own).expect("as it should be"), 2.5);
        assert!(process.quit(), "it ends when it is told to");
    }

    #[test]
    fn what_a_process_does_wrong_is_said() {
        for (script, complaint) in [
            ("read l; echo error no such file", "answers `crosswind` with an error: no such file"),
            ("read l; echo hello", "must begin with `ok` or `error`"),
            ("read l; echo broken >&2; exit 3", "exit status 3; it said: broken"),
            ("read l; kill -9 $$", "signal 9"),
            ("exec >&-; read l; sleep 0.1", "it ended with exit status 0"),
            ("echo ok 1 early 1; read l; sleep 9", "was not asked for"),
            ("read l; head -c 9000 /dev/zero", "more than 4096 bytes"),
        ] {
            let mut process = shell(script);
            if script.starts_with("echo") {
                while process.output.try_recv().map(|output| assert!(matches!(output, Output::Line(_)))).is_err() {
                    std::thread::sleep(LOOK);
                }
                process = shell("read l; echo ok 1 sh 1; echo ok; read l");
                let _ = process.hello(Path::new("/dev/null"));
                let deadline = Instant::now() + PATIENCE;
                let error = loop {
                    match process.check() {
                        Err(error) => break error,
                        Ok(()) => assert!(Instant::now() < deadline, "it is heard"),
                    }
                };
                assert!(error.to_string().contains(complaint), "{error}");
                continue;
            }
            let error = process.hello(Path::new("/dev/null")).expect_err(script);
            assert!(error.to_string().contains(complaint), "{script}: {error}");
        }
        assert!(Process::start(&["/no/such/probe".into()], &[], &[], 0).is_err());
    }

    #[test]
    fn a_process_that_does_not_end_is_ended_even_when_it_is_held_still() {
        let mut process = shell("trap '' TERM; while :; do sleep 1; done");
        process.hold(true);
        assert!(!process.quit());
        assert!(process.ended());
    }
}
