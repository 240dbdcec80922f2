//! Commands that need no shell: a program and its arguments, perhaps with `< {input}` and `> {output}`.
//!
//! Starting a shell costs more than many programs do. So a line that a shell would only divide into words is divided
//! here, and its program is executed at once. The program is the one that a shell would find, in the same environment;
//! if there is none, a shell runs the line and says so.

use std::os::unix::ffi::OsStrExt as _;

use super::line::{Values, placeholder_at};

/// A command as a program gets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Direct {
    /// Where the program may be, in the order in which a shell looks for it.
    pub places: Vec<Vec<u8>>,
    /// The program's name, then its arguments.
    pub words: Vec<Vec<u8>>,
    /// Files for standard input and output. Anything but a regular file is left to a shell.
    pub stdin: Option<Vec<u8>>,
    pub stdout: Option<Vec<u8>>,
}

impl Direct {
    /// Returns the bytes of which [`Self::of_bytes`] makes the same command in another process: texts that end with a 0
    /// byte, which none of them holds.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let file = |file: &Option<Vec<u8>>| file.clone().unwrap_or_default();
        let files = [file(&self.stdin), file(&self.stdout)];
        let texts = [&files, self.places.as_slice(), &[Vec::new()], self.words.as_slice()].concat();
        texts.into_iter().flat_map(|text| [text, vec![0]].concat()).collect()
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let mut texts = bytes.strip_suffix(b"\0")?.split(|byte| *byte == 0).map(<[u8]>::to_vec);
        let mut file = || texts.next().map(|file| Some(file).filter(|file| !file.is_empty()));
        let (stdin, stdout) = (file()?, file()?);
        let places = texts.by_ref().take_while(|place| !place.is_empty()).collect();
        Some(Self { stdin, stdout, places, words: texts.collect() })
    }
}

/// Where a shell looks for programs: the directories of `PATH`.
#[derive(Clone, Debug)]
pub(super) struct Directories(Vec<Vec<u8>>);

impl Directories {
    /// Returns those of this process's environment. `None` if a function there may bear a program's name, or if the shell
    /// would have directories of its own.
    pub fn of_environment() -> Option<Self> {
        let has_functions = std::env::vars_os().any(|(name, _)| name.as_bytes().starts_with(b"BASH_FUNC_"));
        let path = std::env::var_os("PATH").filter(|_| !has_functions)?;
        Some(Self(path.as_bytes().split(|byte| *byte == b':').map(<[u8]>::to_vec).collect()))
    }

    fn places_of(&self, program: &str) -> Vec<Vec<u8>> {
        let place = |directory: &Vec<u8>| match directory.as_slice() {
            b"" => program.into(),
            directory => [directory, b"/", program.as_bytes()].concat(),
        };
        if program.contains('/') { vec![program.into()] } else { self.0.iter().map(place).collect() }
    }
}

/// Words that a shell runs itself, or takes for its syntax: those of dash, bash, ksh, mksh, yash and busybox.
const OF_SHELLS: &str = ". : [ [[ alias array autoload bg bind bindkey break builtin caller case cd chdir command compgen complete \
    compopt continue coproc declare dirs disown do done echo elif else enable esac eval exec exit export false fc \
    fg fi for function getopts global hash help history if in integer jobs kill let local logout mapfile nameref \
    newgrp popd print printf pushd pwd read readarray readonly return select set shift shopt source stop suspend \
    test then time times trap true type typeset ulimit umask unalias unset until wait whence while";

/// Fills the placeholders of a line that needs no shell. `None` for all others.
pub(super) fn direct(line: &str, values: &Values<'_>, directories: &Directories) -> Option<Direct> {
    let mut parts = line.split(' ').filter(|part| !part.is_empty());
    let program = parts.next()?;
    let is_name = |program: &str| program.chars().all(|sign| is_literal(sign) && sign != '=');
    if OF_SHELLS.split(' ').any(|word| word == program) || !is_name(program) {
        return None;
    }
    let places = directories.places_of(program);
    let mut found = Direct { places, words: vec![program.into()], stdin: None, stdout: None };
    while let Some(part) = parts.next() {
        let (place, wanted): (_, &[&str]) = match part {
            "<" => (&mut found.stdin, &["{input}", "{}"]),
            ">" => (&mut found.stdout, &["{output}"]),
            _ => {
                found.words.push(word(line, part, values)?);
                continue;
            }
        };
        let file = parts.next().filter(|file| wanted.contains(file))?;
        if place.replace(word(line, file, values)?).is_some() {
            return None;
        }
    }
    Some(found)
}

/// Fills the placeholders of a word. `None` if it holds anything that a shell would read.
fn word(line: &str, part: &str, values: &Values<'_>) -> Option<Vec<u8>> {
    let (mut out, mut rest) = (Vec::with_capacity(2 * part.len()), part);
    while let Some(next) = rest.chars().next() {
        if let Some(placeholder) = placeholder_at(line, rest) {
            out.extend(values.of(placeholder));
            rest = &rest[placeholder.len()..];
        } else if is_literal(next) {
            out.push(next as u8);
            rest = &rest[1..];
        } else {
            return None;
        }
    }
    Some(out)
}

/// Whether a character stands for itself in every shell, wherever it is in a word.
fn is_literal(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || "_-./,:+@%=".contains(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<String> {
        let values = Values { input: b"/in/a b", output: b"/out/r", name: b"a b", task: 7 };
        let found = direct(line, &values, &Directories(vec![b"/bin".to_vec()]))?;
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        let words: Vec<String> = found.words.iter().map(text).collect();
        let file = |sign: &str, file: &Option<Vec<u8>>| {
            file.as_ref().map_or(String::new(), |file| format!("{sign}{}", text(file)))
        };
        Some(words.join("|") + &file("<", &found.stdin) + &file(">", &found.stdout))
    }

    #[test]
    fn a_program_and_its_arguments_need_no_shell() {
        assert_eq!(of("gzip -c {}").as_deref(), Some("gzip|-c|/in/a b"));
        assert_eq!(of("  gzip  -c {input} > {output} ").as_deref(), Some("gzip|-c|/in/a b>/out/r"));
        assert_eq!(of("/bin/sort -u < {} > {output}").as_deref(), Some("/bin/sort|-u</in/a b>/out/r"));
        assert_eq!(of("dd if={input} of=x{number}.{ext}").as_deref(), Some("dd|if=/in/a b|of=x000007."));
    }

    #[test]
    fn it_is_the_same_in_another_process() {
        let words = vec![b"x".to_vec(), Vec::new(), b"a b".to_vec(), Vec::new()];
        for found in [
            Direct { places: vec![b"/bin/x".to_vec()], words: words.clone(), ..Direct::default() },
            Direct { places: Vec::new(), words, stdin: Some(b"in".to_vec()), stdout: Some(b"out".to_vec()) },
        ] {
            assert_eq!(Direct::of_bytes(&found.to_bytes()), Some(found));
        }
        let directories = Directories([&b"/bin"[..], b"", b"here"].map(<[u8]>::to_vec).into());
        assert_eq!(directories.places_of("x"), [&b"/bin/x"[..], b"x", b"here/x"]);
        assert_eq!(directories.places_of("./x"), [b"./x"]);
        assert_eq!(Direct::of_bytes(b""), None);
        assert_eq!(Direct::of_bytes(b"a\0"), None);
    }

    #[test]
    fn what_a_shell_reads_is_left_to_it() {
        for line in [
            "",
            " ",
            "echo {}",
            "cd {}",
            "exec gzip {}",
            "time gzip {}",
            "A=1 gzip {}",
            "{input} -x",
            "gzip {} | wc",
            "gzip {}; true",
            "gzip {} &",
            "gzip \"{}\"",
            "gzip '{}'",
            "gzip $HOME {}",
            "gzip `x` {}",
            "gzip *{}",
            "gzip ~ {}",
            "gzip {} # no",
            "gzip {}\n",
            "gzip\t{}",
            "gzip {} > /tmp/x",
            "gzip < /tmp/x {}",
            "gzip {} >> {output}",
            "gzip {} 2> {output}",
            "gzip {} >",
            "gzip {} > {output} > {output}",
            "gzip {} <{input}",
            "gzip ? {}",
            "gzip [a] {}",
            "gzip \\a {}",
            "gzip {a,b} {}",
            "gzip !x {}",
            "gzip é {}",
            "gzip {}{",
            "if {}",
            "x() {}",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
