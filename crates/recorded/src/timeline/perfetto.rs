//! A timeline for <https://ui.perfetto.dev>: Trace Event Format of Chrome, one thread for each rank.

use std::fmt::Write as _;

use super::{Doing, NONE, Span, Timeline};

/// Bytes that are handed out at a time.
const PART: usize = 1 << 20;

impl Timeline {
    /// Writes all spans as JSON, a part at a time. Steps are counted from 1.
    ///
    /// # Errors
    /// The first error of `write`.
    pub fn perfetto<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut text = String::from("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
        text += r#"{"ph":"M","pid":1,"name":"process_name","args":{"name":"recorded program"}}"#;
        let names: Vec<String> = self.operations.iter().map(|name| quoted(name)).collect();
        for (rank, lane) in self.ranks.iter().zip(&self.lanes) {
            // Tracks are sorted by name unless each has a place; thread 0 would be the process.
            let tid = u64::from(*rank) + 1;
            let _ = write!(
                text,
                ",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{tid},\"name\":\"thread_name\",\"args\":{{\"name\":\"rank {rank}\"}}}}\
                 ,\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{tid},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{tid}}}}}"
            );
            for span in lane {
                self.event(&mut text, span, tid, &names);
                if text.len() >= PART {
                    write(text.as_bytes())?;
                    text.clear();
                }
            }
        }
        text += "\n]}\n";
        write(text.as_bytes())
    }

    fn event(&self, text: &mut String, span: &Span, tid: u64, names: &[String]) {
        let (start, length) = (span.start, span.end - span.start);
        let operation = names.get(span.operation as usize);
        let name = match (span.doing, operation) {
            (Doing::Compute, _) => "\"compute\"".to_owned(),
            (Doing::Wait, _) => format!("\"wait for rank {}\"", self.number(span.awaited)),
            (Doing::Call, operation) => operation.cloned().unwrap_or_else(|| "\"call\"".into()),
        };
        let _ = write!(
            text,
            ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{tid},\"ts\":{}.{:03},\"dur\":{}.{:03},\"name\":{name},\"cat\":\"{}\",\
             \"args\":{{\"step\":{}",
            start.div_euclid(1000),
            start.rem_euclid(1000),
            length / 1000,
            length % 1000,
            span.doing.name(),
            u64::from(span.step) + 1,
        );
        if let Some(operation) = operation {
            let _ = write!(text, ",\"operation\":{operation}");
        }
        if span.doing == Doing::Wait {
            let _ = write!(text, ",\"waits_for\":{}", self.number(span.awaited));
            if span.cause != NONE {
                let _ = write!(text, ",\"caused_by\":{}", self.number(span.cause));
            }
        }
        text.push_str("}}");
    }

    fn number(&self, rank: u32) -> u32 {
        self.ranks.get(rank as usize).copied().unwrap_or(NONE)
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
