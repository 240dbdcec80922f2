//! Messages of the probe protocol with a foreign process: one line each way, plain ASCII
//! (docs/reference/probe-protocol.md).
//!
//! No I/O here. Bytes from a process are parsed, and errors describe what is wrong with them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use serde::Serialize;

use crate::config::Direction;

pub const VERSION: u32 = 1;
/// Most bytes of a line, its end included.
pub const LONGEST_LINE: usize = 4096;
/// Most facts in the answer to the first line.
pub const MOST_FACTS: usize = 64;
/// Most steps that one unit of work may have.
pub const MOST_STEPS: f64 = 1e12;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compute {
    /// A kernel by name, with its sizes.
    Kernel {
        name: String,
        /// For `diagonals`: side of the matrix and diagonals per unit.
        sizes: Vec<u32>,
    },
    Own,
}

/// A line to the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// The first line: asks for name and version, and names the file of the counter.
    Hello {
        counter: &'a str,
    },
    /// Asks the process to compute from now on.
    Compute(&'a Compute),
    /// Connect, write the ticket, and move bytes from now on.
    Flow {
        /// As seen from the process.
        direction: Direction,
        to: SocketAddr,
        ticket: &'a str,
        message_bytes: u64,
    },
    Close,
    Quit,
}

impl fmt::Display for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hello { counter } => write!(f, "crosswind {VERSION} {counter}"),
            Self::Compute(Compute::Own) => write!(f, "compute own"),
            Self::Compute(Compute::Kernel { name, sizes }) => {
                write!(f, "compute {name}")?;
                sizes.iter().try_for_each(|size| write!(f, " {size}"))
            }
            Self::Flow { direction, to, ticket, message_bytes } => {
                let word = if *direction == Direction::Send { "send" } else { "receive" };
                write!(f, "flow {word} {to} {ticket} {message_bytes}")
            }
            Self::Close => write!(f, "close"),
            Self::Quit => write!(f, "quit"),
        }
    }
}

/// A line from the process: success, with words, or an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// `ok`, and the words after it.
    Ok(Vec<String>),
    /// The word `error`, with the text of the error.
    Error(String),
}

impl Answer {
    /// Reads a line, without its end.
    ///
    /// # Errors
    /// When it is malformed, with the reason.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        if line.len() >= LONGEST_LINE {
            return Err(format!("a line of more than {LONGEST_LINE} bytes"));
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().any(|byte| !(b' '..=b'~').contains(byte)) {
            return Err(format!("a line that is not plain ASCII: {}", shown(line)));
        }
        let text: String = line.iter().map(|byte| char::from(*byte)).collect();
        let (first, rest) = text.split_once(' ').unwrap_or((&text, ""));
        match first {
            "ok" => Ok(Self::Ok(rest.split_ascii_whitespace().map(str::to_owned).collect())),
            "error" => Ok(Self::Error(rest.trim().to_owned())),
            _ => Err(format!("a line must begin with `ok` or `error`; it is {}", shown(line))),
        }
    }
}

/// Formats a line for messages: shortened, with control characters escaped.
#[must_use]
pub fn shown(line: &[u8]) -> String {
    const MOST: usize = 120;
    let text: String = line.iter().take(MOST).flat_map(|byte| byte.escape_ascii()).map(char::from).collect();
    if line.len() > MOST { format!("\"{text}...\"") } else { format!("\"{text}\"") }
}

/// Description of a process, from its answer to the first line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hello {
    /// Its name, such as java.
    pub name: String,
    pub version: String,
    pub facts: BTreeMap<String, String>,
}

impl Hello {
    /// Reads the words after `ok`.
    ///
    /// # Errors
    /// When they are malformed, with the reason.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let [version, name, own_version, facts @ ..] = words else {
            return Err("the first answer must be `ok 1 NAME VERSION [KEY=VALUE ...]`".into());
        };
        if version.parse() != Ok(VERSION) {
            return Err(format!("it speaks version {version} of the protocol; this is version {VERSION}"));
        }
        if facts.len() > MOST_FACTS {
            return Err(format!("the first answer has {} facts; at most {MOST_FACTS} are kept", facts.len()));
        }
        let mut known = BTreeMap::new();
        for fact in facts {
            let pair = fact.split_once('=').filter(|(key, _)| !key.is_empty());
            let (key, value) = pair.ok_or_else(|| format!("{fact:?} in the first answer is not KEY=VALUE"))?;
            if known.insert(key.to_owned(), value.to_owned()).is_some() {
                return Err(format!("{key} stands twice in the first answer"));
            }
        }
        Ok(Self { name: name.clone(), version: own_version.clone(), facts: known })
    }
}

/// Steps per unit of work, from the answer to `compute`.
///
/// # Errors
/// When it is malformed, with the reason.
pub fn steps_per_unit(words: &[String]) -> Result<f64, String> {
    let [word] = words else { return Err("the answer to `compute` must be `ok STEPS_PER_UNIT`".into()) };
    match word.parse::<f64>() {
        Ok(steps) if steps > 0.0 && steps <= MOST_STEPS => Ok(steps),
        _ => Err(format!("steps per unit is {word:?}; it must be greater than 0 and at most {MOST_STEPS:e}")),
    }
}

/// The local port of a connection, from the answer to `flow`.
///
/// # Errors
/// When it is malformed, with the reason.
pub fn local_port(words: &[String]) -> Result<u16, String> {
    let [word] = words else { return Err("the answer to `flow` must be `ok LOCAL_PORT`".into()) };
    match word.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("the local port is {word:?}; it must be 1 to 65535")),
    }
}

/// Checks that an answer has no words.
///
/// # Errors
/// When it has.
pub fn nothing(request: &str, words: &[String]) -> Result<(), String> {
    if words.is_empty() {
        return Ok(());
    }
    Err(format!("the answer to `{request}` must be `ok` alone; it is `ok {}`", words.join(" ")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ok(line: &str) -> Vec<String> {
        match Answer::parse(line.as_bytes()) {
            Ok(Answer::Ok(words)) => words,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn requests_are_as_the_protocol_has_them() {
        let kernel = Compute::Kernel { name: "diagonals".into(), sizes: vec![1024, 1] };
        let to = SocketAddr::from(([127, 0, 0, 1], 7117));
        let flow = Request::Flow { direction: Direction::Receive, to, ticket: "T0", message_bytes: 1_000_000 };
        let lines: Vec<String> = [
            Request::Hello { counter: "/dev/shm/c" },
            Request::Compute(&kernel),
            Request::Compute(&Compute::Own),
            flow,
            Request::Close,
            Request::Quit,
        ]
        .iter()
        .map(ToString::to_string)
        .collect();
        assert_eq!(
            lines,
            [
                "crosswind 1 /dev/shm/c",
                "compute diagonals 1024 1",
                "compute own",
                "flow receive 127.0.0.1:7117 T0 1000000",
                "close",
                "quit",
            ]
        );
    }

    #[test]
    fn a_greeting_has_name_version_and_facts() {
        let hello = Hello::parse(&ok("ok 1 java 25.0.2 gc=Serial threads=virtual")).expect("as it should be");
        assert_eq!((hello.name.as_str(), hello.version.as_str()), ("java", "25.0.2"));
        assert_eq!(hello.facts["gc"], "Serial");
        for (line, complaint) in [
            ("ok", "must be `ok 1 NAME VERSION"),
            ("ok 2 java 25", "version 2"),
            ("ok 1 java 25 serial", "not KEY=VALUE"),
            ("ok 1 java 25 a=1 a=2", "twice"),
        ] {
            let error = Hello::parse(&ok(line)).expect_err(line);
            assert!(error.contains(complaint), "{error}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(steps_per_unit(&ok("ok 256")), Ok(256.0));
        for line in ["ok 0", "ok -1", "ok nan", "ok inf", "ok 1e13", "ok", "ok 1 2"] {
            assert!(steps_per_unit(&ok(line)).is_err(), "{line}");
        }
        assert_eq!(local_port(&ok("ok 40000")), Ok(40_000));
        for line in ["ok 0", "ok 65536", "ok", "ok x"] {
            assert!(local_port(&ok(line)).is_err(), "{line}");
        }
    }

    #[test]
    fn what_is_shown_of_a_line_moves_no_cursor() {
        let error = Answer::parse(b"\x1b[2J hello").expect_err("not ASCII");
        assert!(!error.contains('\x1b') && error.contains("\\x1b"), "{error}");
        assert_eq!(Answer::parse(b"error  no such kernel "), Ok(Answer::Error("no such kernel".into())));
        assert!(Answer::parse(&[b'o'; LONGEST_LINE]).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(Answer::Ok(words)) = Answer::parse(&bytes) {
                let _ = (Hello::parse(&words), steps_per_unit(&words), local_port(&words));
            }
        }
    }
}
