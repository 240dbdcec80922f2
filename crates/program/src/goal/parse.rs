//! Parser of GOAL files, for the text format that LogGOPSim's txt2bin reads.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   l1: calc 1000            // nanoseconds
//!   l2: send 8b to 1 tag 5 cpu 0 nic 0
//!   l2 requires l1           /* l1 is over, or with irequires: begun */
//! }
//! rank 1 {
//!   recv 8b from 0 tag 5     // -1: any source, any tag
//! }
//! ```
//!
//! A line holds one operation or one requirement. Labels are local to a rank and must be defined above their uses.

use std::collections::HashMap;
use std::fmt;

use super::{Act, LARGEST_BYTES, Place, Schedule};

/// Limits on ranks, and on operations and requirements per file, so that they fit into memory.
const MOST_RANKS: u64 = 1_000_000;
const MOST_LINES: usize = 500_000_000;
/// Longest computation, ns: about a hundred years.
const LONGEST_NS: u64 = 3_000_000_000_000_000_000;
/// Largest number of a processor or an interface: LogGOPSim has 8 bits for it.
const LAST_PLACE: u64 = u8::MAX as u64;

/// An error in a GOAL file, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalError {
    /// Line number in the text, from 1.
    pub line: usize,
    pub problem: String,
}

impl fmt::Display for GoalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for GoalError {}

/// A rank's block while it is parsed. Labels are only looked up, never iterated over, so hash order has no effect.
#[derive(Default)]
pub(super) struct Block<'a> {
    pub(super) acts: Vec<Act>,
    labels: HashMap<&'a str, u32, std::hash::BuildHasherDefault<std::hash::DefaultHasher>>,
    /// Edges: an operation, the operation that it requires, and whether that one need only have begun.
    pub(super) needs: Vec<(u32, u32, bool)>,
    /// Places of the operations up to the last one that is elsewhere than on processor 0 and interface 0.
    places: Vec<Place>,
}

pub(super) fn parse(text: &[u8]) -> Result<Vec<Schedule>, GoalError> {
    if text.contains(&0) {
        let problem = "the file is binary; name the text that it was made of (LogGOPSim's txt2bin reads it)".into();
        return Err(GoalError { line: 1, problem });
    }
    let text = std::str::from_utf8(text).map_err(|error| {
        let line = 1 + text[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
        GoalError { line, problem: "is no UTF-8 text".into() }
    })?;
    let mut reader = Reader { ranks: None, schedules: Vec::new(), open: None, lines: 0 };
    let mut in_comment = false;
    let mut line = 0;
    for (at, raw) in text.lines().enumerate() {
        line = at + 1;
        let mut words = Vec::new();
        tokens(raw, &mut in_comment, &mut words);
        reader.line(&words).map_err(|problem| GoalError { line, problem })?;
    }
    let end = |problem: &str| GoalError { line: line.max(1), problem: problem.into() };
    if in_comment {
        return Err(end("a comment is not closed; it needs */"));
    }
    if let Some((rank, _)) = reader.open {
        return Err(end(&format!("rank {rank} is not closed; it needs }}")));
    }
    let Some(ranks) = reader.ranks else { return Err(end("there is no num_ranks")) };
    reader.schedules.resize_with(ranks as usize, || None);
    Ok(reader.schedules.into_iter().map(Option::unwrap_or_default).collect())
}

/// Splits a line into words without comments. `:`, `{` and `}` are words.
fn tokens<'a>(raw: &'a str, in_comment: &mut bool, words: &mut Vec<&'a str>) {
    let mut rest = raw;
    loop {
        if *in_comment {
            let Some(end) = rest.find("*/") else { return };
            rest = &rest[end + 2..];
            *in_comment = false;
        }
        rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with("//") {
            return;
        }
        if let Some(after) = rest.strip_prefix("/*") {
            *in_comment = true;
            rest = after;
            continue;
        }
        let stop = |c: char| c.is_whitespace() || matches!(c, ':' | '{' | '}' | '/');
        let end = match rest.find(stop) {
            Some(0) => rest.chars().next().map_or(1, char::len_utf8),
            Some(end) => end,
            None => rest.len(),
        };
        words.push(&rest[..end]);
        rest = &rest[end..];
    }
}

struct Reader<'a> {
    ranks: Option<u32>,
    schedules: Vec<Option<Schedule>>,
    open: Option<(u32, Block<'a>)>,
    lines: usize,
}

fn number(word: Option<&&str>, what: &str, most: u64) -> Result<u64, String> {
    let word = word.ok_or_else(|| format!("{what} is missing"))?;
    if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{what} is {word:?}; it must be a whole number"));
    }
    match word.parse::<u64>() {
        Ok(value) if value <= most => Ok(value),
        _ => Err(format!("{what} is {word}; it must be at most {most}")),
    }
}

impl<'a> Reader<'a> {
    fn line(&mut self, words: &[&'a str]) -> Result<(), String> {
        let [first, rest @ ..] = words else { return Ok(()) };
        self.lines += 1;
        if self.lines > MOST_LINES {
            return Err(format!("there are more than {MOST_LINES} operations and requirements"));
        }
        if let Some((rank, block)) = &mut self.open {
            if *first != "}" {
                let ranks = self.ranks.unwrap_or_default();
                return block.line(words, ranks);
            }
            if !rest.is_empty() {
                return Err(format!("{:?} stands behind }}; it needs a line of its own", rest[0]));
            }
            let (rank, block) = (*rank, std::mem::take(block));
            self.open = None;
            self.schedules[rank as usize] = Some(block.schedule()?);
            return Ok(());
        }
        match *first {
            "num_ranks" => {
                if self.ranks.is_some() {
                    return Err("num_ranks is given twice".into());
                }
                let ranks = number(rest.first(), "num_ranks", MOST_RANKS)?;
                if ranks == 0 {
                    return Err("num_ranks is 0; it must be at least 1".into());
                }
                if let Some(more) = rest.get(1) {
                    return Err(format!("{more:?} stands behind num_ranks"));
                }
                self.ranks = Some(ranks as u32);
                Ok(())
            }
            "rank" => {
                let ranks = self.ranks.ok_or("rank comes before num_ranks")?;
                let rank = number(rest.first(), "rank", u64::from(ranks) - 1)? as u32;
                if rest.get(1) != Some(&"{") || rest.len() > 2 {
                    return Err(format!("rank {rank} must be followed by {{ and the end of the line"));
                }
                if self.schedules.len() <= rank as usize {
                    self.schedules.resize_with(rank as usize + 1, || None);
                }
                if self.schedules[rank as usize].is_some() {
                    return Err(format!("rank {rank} is given twice"));
                }
                self.open = Some((rank, Block::default()));
                Ok(())
            }
            other => Err(format!("{other:?} stands outside of a rank; it must be num_ranks or rank")),
        }
    }
}

impl<'a> Block<'a> {
    fn line(&mut self, words: &[&'a str], ranks: u32) -> Result<(), String> {
        match words {
            [label, ":", act @ ..] => {
                is_label(label)?;
                let at = self.acts.len() as u32;
                self.add(act, ranks)?;
                if self.labels.insert(label, at).is_some() {
                    return Err(format!(
                        "label {label} is given twice in this rank, so what requires it is not known; rename one of them"
                    ));
                }
                Ok(())
            }
            [label, how @ ("requires" | "irequires"), required] => {
                let find = |label: &str| {
                    self.labels.get(label).copied().ok_or_else(|| format!("label {label:?} is not given above"))
                };
                self.needs.push((find(label)?, find(required)?, *how == "irequires"));
                Ok(())
            }
            act => self.add(act, ranks),
        }
    }

    fn add(&mut self, words: &[&str], ranks: u32) -> Result<(), String> {
        let (act, place) = act_of(words, ranks)?;
        if place != Place::default() {
            self.places.resize(self.acts.len(), Place::default());
            self.places.push(place);
        }
        self.acts.push(act);
        Ok(())
    }

    /// Builds the schedule: operations with their followers.
    pub(super) fn schedule(mut self) -> Result<Schedule, String> {
        let count = self.acts.len();
        if !self.places.is_empty() {
            self.places.resize(count, Place::default());
        }
        let mut schedule = Schedule { needs: vec![0; count], starts: vec![0; count + 1], ..Schedule::default() };
        for &(operation, required, _) in &self.needs {
            schedule.needs[operation as usize] += 1;
            schedule.starts[required as usize + 1] += 1;
        }
        for at in 0..count {
            schedule.starts[at + 1] += schedule.starts[at];
        }
        schedule.followers = vec![(0, false); self.needs.len()];
        let mut next = schedule.starts.clone();
        for &(operation, required, begun) in &self.needs {
            let place = &mut next[required as usize];
            schedule.followers[*place as usize] = (operation, begun);
            *place += 1;
        }
        schedule.acts = self.acts;
        schedule.places = self.places;
        // Repeatedly removes operations that wait for nothing. Those never reached are on or behind a cycle.
        let mut needs = schedule.needs.clone();
        let mut free: Vec<u32> = (0..count as u32).filter(|&at| needs[at as usize] == 0).collect();
        let mut reached = 0;
        while let Some(at) = free.pop() {
            reached += 1;
            let range = schedule.starts[at as usize] as usize..schedule.starts[at as usize + 1] as usize;
            for &(follower, _) in &schedule.followers[range] {
                needs[follower as usize] -= 1;
                if needs[follower as usize] == 0 {
                    free.push(follower);
                }
            }
        }
        if reached < count {
            return Err(format!("{} operations of this rank wait for each other in a circle", count - reached));
        }
        Ok(schedule)
    }
}

fn is_label(word: &str) -> Result<(), String> {
    let fits = word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if fits { Ok(()) } else { Err(format!("label {word:?} must be letters, digits and _, a letter first")) }
}

fn act_of(words: &[&str], ranks: u32) -> Result<(Act, Place), String> {
    let [name, rest @ ..] = words else { return Err("an operation is missing behind the label".into()) };
    match *name {
        "calc" => {
            let ns = number(rest.first(), "calc", LONGEST_NS)?;
            let Options { place, .. } = options(&rest[1..], &["cpu"])?;
            Ok((Act::Calc { ns }, place))
        }
        "send" | "recv" => {
            let sends = *name == "send";
            let [size, way, partner, more @ ..] = rest else {
                return Err(format!("{name} must be like {name} 8b {} 1 tag 0", if sends { "to" } else { "from" }));
            };
            let digits = size.strip_suffix('b').ok_or_else(|| format!("size {size:?} must end with b, like 8b"))?;
            let bytes = number(Some(&digits), "size", LARGEST_BYTES)?;
            let expected = if sends { "to" } else { "from" };
            if *way != expected {
                return Err(format!("{way:?} stands where {expected:?} must"));
            }
            let any = !sends && *partner == "-1";
            let other = if any { None } else { Some(number(Some(partner), "rank", u64::from(ranks) - 1)? as u32) };
            let Options { tag, place } = options(more, &["tag", "cpu", "nic"])?;
            let act = match other {
                Some(to) if sends => Act::Send { to, tag: tag.ok_or("the tag of a send is -1")?, bytes },
                from => Act::Receive { from, tag },
            };
            Ok((act, place))
        }
        other => Err(format!("{other:?} is no operation; it must be calc, send or recv")),
    }
}

struct Options {
    /// The tag of a message; `None` in a receive of any tag.
    tag: Option<u64>,
    place: Place,
}

/// Parses the options after an operation. The tag is 0 unless given.
fn options(words: &[&str], known: &[&str]) -> Result<Options, String> {
    let mut options = Options { tag: Some(0), place: Place::default() };
    let mut words = words;
    while let [name, rest @ ..] = words {
        if !known.contains(name) {
            return Err(format!("{name:?} stands where {} or the end of the line must", known.join(", ")));
        }
        let [value, after @ ..] = rest else { return Err(format!("{name} needs a number")) };
        match *name {
            "tag" if *value == "-1" => options.tag = None,
            "tag" => options.tag = Some(number(Some(value), "tag", u64::MAX)?),
            "cpu" => options.place.cpu = number(Some(value), name, LAST_PLACE)? as u8,
            _ => options.place.nic = number(Some(value), name, LAST_PLACE)? as u8,
        }
        words = after;
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        parse(text.as_bytes()).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn operations_comments_and_requirements_are_read() {
        let text = "/* two\nranks */ num_ranks 2\nrank 0 { // the first\n a1: calc 10 cpu 0\n send 5b to 1 tag 3 nic 0\n\
                    b:recv 1b from -1 tag -1\n b requires a1\n}\n";
        let read = parse(text.as_bytes()).unwrap();
        assert_eq!(read.len(), 2);
        let expected =
            [Act::Calc { ns: 10 }, Act::Send { to: 1, tag: 3, bytes: 5 }, Act::Receive { from: None, tag: None }];
        assert_eq!(read[0].acts, expected);
        assert_eq!((read[0].needs.clone(), read[0].followers.clone()), (vec![0, 0, 1], vec![(2, false)]));
        assert_eq!(read[1], Schedule { starts: vec![], ..Schedule::default() });
    }

    #[test]
    fn places_are_kept_only_where_one_differs_from_0() {
        let text = "num_ranks 2\nrank 0 {\ncalc 1\nsend 1b to 1 tag 2 cpu 3 nic 4\ncalc 2\n}\nrank 1 {\nrecv 1b from 0 tag 2 cpu 0\n}\n";
        let read = parse(text.as_bytes()).unwrap();
        assert_eq!(read[0].places, [Place::default(), Place { cpu: 3, nic: 4 }, Place::default()]);
        assert!(read[1].places.is_empty());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        assert_eq!(problem(""), "line 1: there is no num_ranks");
        assert_eq!(problem("num_ranks 2\nrank 2 {\n}"), "line 2: rank is 2; it must be at most 1");
        assert_eq!(problem("num_ranks 1\nrank 0 {\nsend 1b to 1 tag 0\n}"), "line 3: rank is 1; it must be at most 0");
        assert_eq!(problem("num_ranks 1\nrank 0 {\n"), "line 2: rank 0 is not closed; it needs }");
        assert_eq!(
            problem("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb irequires a\n}"),
            "line 7: 2 operations of this rank wait for each other in a circle"
        );
        assert!(problem("num_ranks 1\nrank 0 {\na requires b\n}").contains("label \"a\" is not given above"));
        assert_eq!(problem("num_ranks 1\nrank 0 {\ncalc 1 cpu 256\n}"), "line 3: cpu is 256; it must be at most 255");
        assert!(problem("num_ranks 99999999999\n").contains("at most 1000000"));
        assert!(problem("num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\n}").contains("rename one"));
        assert!(problem("\u{2}\0\0\0\u{8}").contains("the file is binary"));
        let sized = |bytes| format!("num_ranks 2\nrank 0 {{\nsend {bytes}b to 1 tag 1\n}}\n");
        let read = parse(sized("5368709120").as_bytes()).unwrap();
        assert_eq!(read[0].acts, [Act::Send { to: 1, tag: 1, bytes: 5_368_709_120 }]);
        assert!(problem(&sized("18446744073709551615")).contains("at most 1099511627776"));
        let tag = |tag| format!("num_ranks 2\nrank 0 {{\nsend 1b to 1 tag {tag}\n}}\n");
        let read = parse(tag("18446744073709551615").as_bytes()).unwrap();
        assert_eq!(read[0].acts, [Act::Send { to: 1, tag: u64::MAX, bytes: 1 }]);
        assert!(problem(&tag("18446744073709551616")).contains("at most 18446744073709551615"));
        assert!(problem("num_ranks 2\nrank 0 {\nsend 8 to 1 tag 0\n}").contains("must end with b"));
    }
}
