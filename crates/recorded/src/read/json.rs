//! JSON without a tree: members of an object in memory, and a document cut into the elements of one array as it comes.

use std::borrow::Cow;

/// Longest element or member that is looked at, bytes.
pub const LONGEST: usize = 16 << 20;

/// Scans for the end of a value, across pieces of input.
#[derive(Clone, Copy, Debug, Default)]
struct Scan {
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// A number or a word, which ends before the next separator.
    bare: bool,
    begun: bool,
}

impl Scan {
    /// Returns the length of the part of `bytes` that belongs to the value, and whether the value ends there.
    fn run(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            if self.in_string {
                if self.escaped {
                    self.escaped = false;
                } else if byte == b'\\' {
                    self.escaped = true;
                } else if byte == b'"' {
                    self.in_string = false;
                    if self.depth == 0 {
                        return (at + 1, true);
                    }
                }
                at += 1;
                continue;
            }
            match byte {
                b'"' => {
                    self.in_string = true;
                    self.begun = true;
                }
                b'{' | b'[' => {
                    self.depth += 1;
                    self.begun = true;
                }
                b'}' | b']' => {
                    if self.depth == 0 {
                        return (at, true);
                    }
                    self.depth -= 1;
                    if self.depth == 0 {
                        return (at + 1, true);
                    }
                }
                b',' if self.depth == 0 => return (at, true),
                _ if self.depth == 0 && byte.is_ascii_whitespace() && self.bare => return (at, true),
                _ if self.depth == 0 && byte.is_ascii_whitespace() => {}
                _ if self.depth == 0 => {
                    self.bare = true;
                    self.begun = true;
                }
                _ => {}
            }
            at += 1;
        }
        (at, false)
    }
}

fn skip_space(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// The members of an object in memory: names without quotes, and values as they stand.
pub struct Members<'a> {
    text: &'a [u8],
    at: usize,
    broken: bool,
}

/// Returns the members of an object, or `None` if the text does not begin as one.
#[must_use]
pub fn members(text: &[u8]) -> Option<Members<'_>> {
    let at = skip_space(text, 0);
    (text.get(at) == Some(&b'{')).then_some(Members { text, at: at + 1, broken: false })
}

impl<'a> Members<'a> {
    /// Whether the text stopped being an object before its end.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    fn one(&mut self) -> Option<Option<(&'a [u8], &'a [u8])>> {
        let mut at = skip_space(self.text, self.at);
        if self.text.get(at) == Some(&b',') {
            at = skip_space(self.text, at + 1);
        }
        match self.text.get(at)? {
            b'}' => return Some(None),
            b'"' => {}
            _ => return None,
        }
        let mut scan = Scan::default();
        let (length, ended) = scan.run(&self.text[at..]);
        if !ended || length < 2 {
            return None;
        }
        let name = &self.text[at + 1..at + length - 1];
        at = skip_space(self.text, at + length);
        if self.text.get(at) != Some(&b':') {
            return None;
        }
        at = skip_space(self.text, at + 1);
        let mut scan = Scan::default();
        let (length, ended) = scan.run(&self.text[at..]);
        if !ended || length == 0 {
            return None;
        }
        self.at = at + length;
        Some(Some((name, &self.text[at..at + length])))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken {
            return None;
        }
        let Some(found) = self.one() else {
            self.broken = true;
            return None;
        };
        found
    }
}

/// Returns the elements of an array in memory, as they stand; what is no array has none.
#[must_use]
pub fn elements(text: &[u8]) -> Vec<&[u8]> {
    let mut at = skip_space(text, 0);
    let mut found = Vec::new();
    if text.get(at) != Some(&b'[') {
        return found;
    }
    at += 1;
    loop {
        at = skip_space(text, at);
        if text.get(at) == Some(&b',') {
            at = skip_space(text, at + 1);
        }
        let mut scan = Scan::default();
        let Some(rest) = text.get(at..) else { return found };
        let (length, ended) = scan.run(rest);
        if !ended || length == 0 {
            return found;
        }
        found.push(&text[at..at + length]);
        at += length;
    }
}

/// Returns a string's text, or `None` if the value is none.
#[must_use]
pub fn string(value: &[u8]) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inner.contains(&b'\\') {
        return serde_json::from_slice::<String>(value).ok().map(Cow::Owned);
    }
    std::str::from_utf8(inner).ok().map(Cow::Borrowed)
}

/// Returns a decimal number times 10^`digits`, rounded toward zero. Exact, unlike a float: microseconds since 1970 with
/// three decimals need 17 digits. `None` if it is no such number, or beyond 64 bits.
#[must_use]
pub fn scaled(value: &[u8], digits: i32) -> Option<i64> {
    let (negative, rest) = value.strip_prefix(b"-").map_or((false, value), |rest| (true, rest));
    let mut total: i128 = 0;
    let mut at = 0;
    let mut left = digits;
    let mut seen = 0;
    let mut in_fraction = false;
    while at < rest.len() {
        match rest[at] {
            digit @ b'0'..=b'9' => {
                seen += 1;
                if !in_fraction || left > 0 {
                    total = total.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
                }
                if in_fraction {
                    left -= 1;
                }
            }
            b'.' if !in_fraction => in_fraction = true,
            b'e' | b'E' => {
                // Rare: the writer's own short form of a float.
                let value: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
                let scaled = value * 10f64.powi(digits);
                return (scaled.abs() < 9.2e18).then_some(scaled as i64);
            }
            _ => return None,
        }
        at += 1;
    }
    if seen == 0 || seen > 36 {
        return None;
    }
    for _ in 0..left.max(0) {
        total = total.checked_mul(10)?;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// What a [`Document`] hands out.
pub trait Sink {
    type Error;

    /// Takes a member of the top-level object, except those of the array.
    ///
    /// # Errors
    /// The member is wrong.
    fn member(&mut self, name: &[u8], value: &[u8]) -> Result<(), Self::Error>;

    /// Takes an element of the array, which begins at this byte of the document.
    ///
    /// # Errors
    /// The element is wrong.
    fn element(&mut self, element: &[u8], at: u64) -> Result<(), Self::Error>;

    /// Makes an error of the document itself.
    fn broken(&self, at: u64, problem: &str) -> Self::Error;
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Start,
    Name,
    Colon,
    Value,
    Element,
    BetweenElements,
    BetweenMembers,
    End,
}

/// Cuts a document into members of its top-level object, and one member, an array, into its elements.
pub struct Document {
    array: &'static [u8],
    place: Place,
    scan: Scan,
    /// What has come so far of a value that is cut by the end of a piece.
    partial: Vec<u8>,
    name: Vec<u8>,
    offset: u64,
    /// Position of the first byte of the value.
    began: u64,
    /// The document is the array itself.
    bare: bool,
}

impl Document {
    #[must_use]
    pub fn new(array: &'static [u8]) -> Self {
        Self {
            array,
            place: Place::Start,
            scan: Scan::default(),
            partial: Vec::new(),
            name: Vec::new(),
            offset: 0,
            began: 0,
            bare: false,
        }
    }

    /// Takes the next piece of the document.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn feed<S: Sink>(&mut self, bytes: &[u8], sink: &mut S) -> Result<(), S::Error> {
        let mut at = 0;
        while at < bytes.len() {
            let here = self.offset + at as u64;
            let byte = bytes[at];
            if matches!(self.place, Place::Name | Place::Value | Place::Element)
                && (self.scan.begun || !byte.is_ascii_whitespace())
            {
                if !self.scan.begun {
                    self.began = here;
                    if self.place == Place::Element && byte == b']' {
                        self.place = if self.bare { Place::End } else { Place::BetweenMembers };
                        at += 1;
                        continue;
                    }
                    if self.place == Place::Name && byte == b'}' {
                        self.place = Place::End;
                        at += 1;
                        continue;
                    }
                    if self.place == Place::Value && byte == b'[' && self.name == self.array {
                        self.place = Place::Element;
                        at += 1;
                        continue;
                    }
                }
                let (length, ended) = self.scan.run(&bytes[at..]);
                let part = &bytes[at..at + length];
                at += length;
                if !ended {
                    if self.partial.len() + part.len() > LONGEST {
                        return Err(sink.broken(self.began, "a value is longer than 16 MiB"));
                    }
                    self.partial.extend_from_slice(part);
                    continue;
                }
                let kept = std::mem::take(&mut self.partial);
                let whole = if kept.is_empty() {
                    Cow::Borrowed(part)
                } else {
                    let mut kept = kept;
                    kept.extend_from_slice(part);
                    Cow::Owned(kept)
                };
                self.scan = Scan::default();
                self.take(&whole, sink)?;
                continue;
            }
            at += 1;
            if byte.is_ascii_whitespace() {
                continue;
            }
            self.place = match (self.place, byte) {
                (Place::Start, b'{') => Place::Name,
                (Place::Start, b'[') => {
                    self.bare = true;
                    Place::Element
                }
                (Place::Colon, b':') => Place::Value,
                (Place::BetweenElements, b',') => Place::Element,
                (Place::BetweenElements, b']') => {
                    if self.bare {
                        Place::End
                    } else {
                        Place::BetweenMembers
                    }
                }
                (Place::BetweenMembers, b',') => Place::Name,
                (Place::BetweenMembers, b'}') => Place::End,
                _ => return Err(sink.broken(here, &format!("{:?} is not expected here", char::from(byte)))),
            };
        }
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn take<S: Sink>(&mut self, whole: &[u8], sink: &mut S) -> Result<(), S::Error> {
        if whole.is_empty() {
            return Err(sink.broken(self.began, "a value is missing"));
        }
        match self.place {
            Place::Name => {
                if !whole.starts_with(b"\"") || whole.len() < 2 {
                    return Err(sink.broken(self.began, "the name of a member must be a string"));
                }
                self.name = whole[1..whole.len() - 1].to_vec();
                self.place = Place::Colon;
            }
            Place::Value => {
                sink.member(&self.name, whole)?;
                self.place = Place::BetweenMembers;
            }
            _ => {
                sink.element(whole, self.began)?;
                self.place = Place::BetweenElements;
            }
        }
        Ok(())
    }

    /// Checks that the document has ended.
    ///
    /// # Errors
    /// It has not.
    pub fn finish<S: Sink>(&self, sink: &S) -> Result<(), S::Error> {
        if self.place == Place::End {
            return Ok(());
        }
        Err(sink.broken(self.offset, "the file ends in the middle of the document"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Kept(Vec<String>);

    impl Sink for Kept {
        type Error = String;
        fn member(&mut self, name: &[u8], value: &[u8]) -> Result<(), String> {
            self.0.push(format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
            Ok(())
        }
        fn element(&mut self, element: &[u8], at: u64) -> Result<(), String> {
            self.0.push(format!("{at}:{}", String::from_utf8_lossy(element)));
            Ok(())
        }
        fn broken(&self, at: u64, problem: &str) -> String {
            format!("byte {at}: {problem}")
        }
    }

    fn read(text: &str, piece: usize) -> Result<Vec<String>, String> {
        let (mut document, mut kept) = (Document::new(b"events"), Kept::default());
        for bytes in text.as_bytes().chunks(piece) {
            document.feed(bytes, &mut kept)?;
        }
        document.finish(&kept)?;
        Ok(kept.0)
    }

    #[test]
    fn a_document_is_cut_alike_whatever_the_pieces() {
        let text = r#" { "a" : 1.5 , "events": [ {"x": "}]\""} , 3,[1,2] ], "b":{"c":[]}, "d": "e" } "#;
        let whole = read(text, 1000).unwrap();
        assert_eq!(whole, ["a=1.5", "27:{\"x\": \"}]\\\"\"}", "43:3", "45:[1,2]", "b={\"c\":[]}", "d=\"e\""]);
        for piece in 1..20 {
            assert_eq!(read(text, piece).unwrap(), whole, "{piece}");
        }
        assert_eq!(read("[1,2]", 1).unwrap(), ["1:1", "3:2"]);
        assert_eq!(read("{\"events\":[]}", 3).unwrap(), [""; 0]);
        assert_eq!(read("{\"events\":[1", 3).unwrap_err(), "byte 12: the file ends in the middle of the document");
        assert_eq!(read("{\"events\":[1}", 3).unwrap_err(), "byte 12: '}' is not expected here");
        assert_eq!(read("hello", 3).unwrap_err(), "byte 0: 'h' is not expected here");
    }

    #[test]
    fn numbers_are_exact() {
        assert_eq!(scaled(b"1712345678901234.567", 3), Some(1_712_345_678_901_234_567));
        assert_eq!(scaled(b"-1.5", 3), Some(-1_500));
        assert_eq!(scaled(b"12", 3), Some(12_000));
        assert_eq!(scaled(b"0.12345", 3), Some(123));
        assert_eq!(scaled(b"1.5e3", 3), Some(1_500_000));
        for wrong in ["", "-", ".", "x", "1.2.3", "99999999999999999999", "null"] {
            assert_eq!(scaled(wrong.as_bytes(), 3), None, "{wrong}");
        }
    }

    #[test]
    fn members_of_an_object() {
        let found: Vec<_> = members(br#"{"a":1, "b" : {"c":2}}"#).unwrap().collect();
        assert_eq!(found, [(&b"a"[..], &b"1"[..]), (&b"b"[..], &br#"{"c":2}"#[..])]);
        let mut broken = members(b"{\"a\":1, b}").unwrap();
        assert!(broken.by_ref().count() == 1 && broken.is_broken());
        assert_eq!(elements(b"[1, \"a\", [2]]"), [&b"1"[..], b"\"a\"", b"[2]"]);
    }
}
