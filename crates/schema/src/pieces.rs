//! Splits a platform's text into the part before the first `[[node]]`, and one piece per node.
//!
//! A TOML parser holds its whole document in memory, at about fifty times the size of the text. A platform may have a
//! million nodes, and a file may be garbage, so each node is parsed separately and no piece may be large. The price:
//! a multi-line string that contains a line `[[node]]` is not understood. No field of a platform needs one.

/// The text of one node, without its header, and the line at which that text starts, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    pub text: &'a str,
    pub line: usize,
}

/// Returns the text before the first `[[node]]`, and the nodes.
pub fn pieces(text: &str) -> (&str, impl Iterator<Item = Piece<'_>>) {
    let mut headers = Headers { text, at: 0, line: 1 };
    let mut open = headers.next();
    let head = &text[..open.map_or(text.len(), |h| h.start)];
    let nodes = std::iter::from_fn(move || {
        let header = open?;
        open = headers.next();
        let end = open.map_or(text.len(), |h| h.start);
        Some(Piece { text: &text[header.end..end], line: header.line + 1 })
    });
    (head, nodes)
}

/// A line that is the header `[[node]]`: its first byte, the byte after its end, and its number.
#[derive(Clone, Copy)]
struct Header {
    start: usize,
    end: usize,
    line: usize,
}

struct Headers<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl Iterator for Headers<'_> {
    type Item = Header;

    fn next(&mut self) -> Option<Header> {
        while self.at < self.text.len() {
            let (start, line) = (self.at, self.line);
            let length = self.text[start..].find('\n').map_or(self.text.len() - start, |n| n + 1);
            self.at += length;
            self.line += 1;
            if is_header(&self.text[start..self.at]) {
                return Some(Header { start, end: self.at, line });
            }
        }
        None
    }
}

fn is_header(line: &str) -> bool {
    let rest = line.trim().strip_prefix("[[").and_then(|l| l.trim_start().strip_prefix("node"));
    let Some(rest) = rest.and_then(|l| l.trim_start().strip_prefix("]]")) else { return false };
    let rest = rest.trim_start();
    rest.is_empty() || rest.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_are_the_text_without_its_headers() {
        let text = "a = 1\n [[ node ]] # x\nb = 2\n[[node]]\n[[node]]\nc = 3";
        let (head, nodes) = pieces(text);
        assert_eq!(head, "a = 1\n");
        let nodes: Vec<_> = nodes.map(|p| (p.text, p.line)).collect();
        assert_eq!(nodes, [("b = 2\n", 3), ("", 5), ("c = 3", 6)]);
    }

    #[test]
    fn other_headers_start_no_piece() {
        let text = "[[nodes]]\n[node]\n# [[node]]\n[[node]] x\n";
        assert_eq!(pieces(text).0, text);
    }
}
