//! A command line with placeholders, which a shell reads once they are filled.
//!
//! | placeholder | stands for |
//! |---|---|
//! | `{input}`, or `{}` | the path of the input, which ends with the input's own name |
//! | `{output}` | the path of the file to write |
//! | `{name}`, or `{/}` | the name of the input |
//! | `{stem}` | that without the last suffix |
//! | `{ext}` | the last suffix without its dot; empty if there is none |
//! | `{.}` | the path of the input without the last suffix of its name |
//! | `{number}` | the task's number, six digits at least |
//!
//! `{}`, `{.}` and `{/}` are left alone in a line that has `{input}`: they mean something to other programs. A value is
//! one word of the shell wherever it stands: outside of quotes, in double or single ones, in `$(...)` and in backticks.
//! In single quotes another program gets it as it is: `sh -c 'cat {input}'` would read a name as shell syntax.

/// What the placeholders of a line stand for.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// Path of the input, or the value.
    pub input: &'a [u8],
    pub output: &'a [u8],
    pub name: &'a [u8],
    pub task: u64,
}

impl Values<'_> {
    pub(super) fn of(&self, placeholder: &str) -> Vec<u8> {
        let (stem, suffix) = split(self.name);
        match placeholder {
            "{input}" | "{}" => self.input.to_vec(),
            "{output}" => self.output.to_vec(),
            "{name}" | "{/}" => self.name.to_vec(),
            "{stem}" => stem.to_vec(),
            "{ext}" => suffix.to_vec(),
            "{.}" => self.input[..self.input.len() - (self.name.len() - stem.len())].to_vec(),
            _ => format!("{:06}", self.task).into_bytes(),
        }
    }
}

/// Divides a name at its last dot, which a name may begin with.
fn split(name: &[u8]) -> (&[u8], &[u8]) {
    match name.iter().rposition(|byte| *byte == b'.') {
        Some(dot) if dot > 0 => (&name[..dot], &name[dot + 1..]),
        _ => (name, &[]),
    }
}

const WORDS: [&str; 6] = ["{input}", "{output}", "{name}", "{stem}", "{ext}", "{number}"];
const SHORT: [&str; 3] = ["{}", "{.}", "{/}"];

/// Whether a line uses its input or the input's name.
#[must_use]
pub fn uses_input(line: &str) -> bool {
    ["{input}", "{name}", "{stem}"].iter().chain(&SHORT).any(|placeholder| line.contains(placeholder))
}

/// Returns the placeholder with which the rest of a line begins.
pub(super) fn placeholder_at(line: &str, rest: &str) -> Option<&'static str> {
    let short: &[&str] = if line.contains("{input}") { &[] } else { &SHORT };
    rest.starts_with('{').then(|| WORDS.iter().chain(short).find(|one| rest.starts_with(**one)).copied())?
}

/// Fills the placeholders of a line.
#[must_use]
pub fn filled(line: &str, values: &Values<'_>) -> Vec<u8> {
    let mut quotes = Quotes::default();
    let (mut out, mut rest) = (Vec::with_capacity(2 * line.len()), line);
    while let Some(next) = rest.chars().next() {
        if let Some(placeholder) = placeholder_at(line, rest) {
            quotes.write(&values.of(placeholder), &mut out);
            rest = &rest[placeholder.len()..];
        } else {
            quotes.pass(next);
            out.extend(next.encode_utf8(&mut [0; 4]).bytes());
            rest = &rest[next.len_utf8()..];
        }
    }
    out
}

/// Where in a shell's quotes a position is.
#[derive(Debug, Default)]
struct Quotes {
    /// The quotes and substitutions that are open, the innermost last.
    open: Vec<Open>,
    escaped: bool,
    dollar: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Single,
    Double,
    /// `$(...)`, in which quotes begin anew.
    Substitution,
    /// A parenthesis within a substitution.
    Parenthesis,
    /// Backticks, in which quotes begin anew and a backslash is read once more.
    Backtick,
}

impl Quotes {
    /// Takes note of a character of the line itself.
    fn pass(&mut self, next: char) {
        let (inner, dollar) = (self.open.last().copied(), std::mem::replace(&mut self.dollar, next == '$'));
        if inner == Some(Open::Single) {
            if next == '\'' {
                self.open.pop();
            }
            return;
        }
        if std::mem::take(&mut self.escaped) {
            self.dollar = false;
            return;
        }
        match (next, inner) {
            ('\\', _) => self.escaped = true,
            ('"', Some(Open::Double)) | ('`', Some(Open::Backtick)) => _ = self.open.pop(),
            ('`', _) => self.open.push(Open::Backtick),
            ('"', _) => self.open.push(Open::Double),
            ('\'', inner) if inner != Some(Open::Double) => self.open.push(Open::Single),
            ('(', _) if dollar => self.open.push(Open::Substitution),
            ('(', Some(Open::Substitution | Open::Parenthesis)) => self.open.push(Open::Parenthesis),
            (')', Some(Open::Substitution | Open::Parenthesis)) => _ = self.open.pop(),
            _ => {}
        }
    }

    /// Writes a value so that the shell takes it as it is.
    fn write(&mut self, value: &[u8], out: &mut Vec<u8>) {
        (self.escaped, self.dollar) = (false, false);
        let mut word = match self.open.last() {
            Some(Open::Double) => escaped(value, b"\\\"$`"),
            Some(Open::Single) => within_single(value),
            _ if is_plain(value) => value.to_vec(),
            _ => [b"'", within_single(value).as_slice(), b"'"].concat(),
        };
        for _ in self.open.iter().filter(|open| **open == Open::Backtick) {
            word = escaped(&word, b"\\$`");
        }
        out.extend(word);
    }
}

/// Whether a value means the same to a shell without quotes, so that numbers can be calculated with.
fn is_plain(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_./,:@%+-".contains(byte))
}

/// Puts a backslash before each of some characters.
fn escaped(value: &[u8], characters: &[u8]) -> Vec<u8> {
    value.iter().flat_map(|byte| characters.contains(byte).then_some(b'\\').into_iter().chain([*byte])).collect()
}

fn within_single(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for byte in value {
        match byte {
            b'\'' => out.extend(br"'\''"),
            byte => out.push(*byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn values<'a>(input: &'a [u8], name: &'a [u8]) -> Values<'a> {
        Values { input, output: b"/out/r", name, task: 7 }
    }

    fn line(line: &str) -> String {
        String::from_utf8(filled(line, &values(b"/in/a b.tar.gz", b"a b.tar.gz"))).expect("text")
    }

    #[test]
    fn each_placeholder_stands_for_its_part() {
        assert_eq!(line("x {input} {output}"), "x '/in/a b.tar.gz' /out/r");
        assert_eq!(line("{name} {stem} {ext} {number}"), "'a b.tar.gz' 'a b.tar' gz 000007");
        assert_eq!(line("{} {.} {/}"), "'/in/a b.tar.gz' '/in/a b.tar' 'a b.tar.gz'");
        assert_eq!(line("find {input} -exec ls {} ;"), "find '/in/a b.tar.gz' -exec ls {} ;");
        assert_eq!(line("awk '{print $1}' {}"), "awk '{print $1}' '/in/a b.tar.gz'");
        assert_eq!(split(b".bashrc"), (&b".bashrc"[..], &b""[..]));
    }

    #[test]
    fn within_quotes_a_value_takes_their_form() {
        assert_eq!(line(r#"x "{input}""#), r#"x "/in/a b.tar.gz""#);
        assert_eq!(line("sh -c 'cat {input}'"), "sh -c 'cat /in/a b.tar.gz'");
        assert_eq!(line(r#"echo "$(cat {input})" {name}"#), r#"echo "$(cat '/in/a b.tar.gz')" 'a b.tar.gz'"#);
        assert_eq!(line(r#"echo \" {name}"#), r#"echo \" 'a b.tar.gz'"#);
        assert_eq!(line("echo it\\'s {name}"), "echo it\\'s 'a b.tar.gz'");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// A real shell prints the name, whatever is in it and however it is quoted.
        #[test]
        fn a_shell_takes_any_name_as_it_is(name in proptest::collection::vec(1u8..=255, 1..20)) {
            let all = values(&name, &name);
            for template in [
                "printf %s {name}",
                "printf %s \"{name}\"",
                "printf %s \"$(printf %sx {name})\"",
                "printf %s \"a\"{name}'b'",
                "printf %s \"`printf %sx {name}`\"",
                "x=`printf %sx {name}`; printf %s \"$x\"",
                "x=`printf %sx \"{name}\"`; printf %s \"$x\"",
            ] {
                let filled = filled(template, &all);
                let shell = Command::new("sh").arg("-c").arg(std::ffi::OsString::from_vec(filled)).output().expect("sh");
                let text = std::ffi::OsStr::from_bytes(&name).as_bytes();
                let expected: Vec<u8> = match template {
                    template if template.contains("%sx") => [text, b"x"].concat(),
                    "printf %s \"a\"{name}'b'" => [b"a", text, b"b"].concat(),
                    _ => text.to_vec(),
                };
                prop_assert_eq!(&shell.stdout, &expected, "{}", template);
            }
        }
    }
}
