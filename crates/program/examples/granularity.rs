//! Prints what each program computes and sends on 64 ranks (or as many as the first argument says) with its default parameters: the
//! table of docs/concepts/programs.md. Run it with `cargo run --release -p crosswind-program --example granularity`.
#![allow(clippy::print_stdout)]

use crosswind_program::plain::{self, Tally};
use crosswind_program::{Column, Em3d, Program, Sample};

fn row<P: Program>(name: &str, program: &P) -> Result<(), String> {
    let outcome = plain::run(program, 1).map_err(|stuck| stuck.to_string())?;
    program.check(&outcome.results)?;
    let mut all = Tally::default();
    outcome.tallies.iter().for_each(|tally| all.add(tally));
    let ranks = outcome.tallies.len() as f64;
    let messages = all.all_messages() as f64;
    let busy = |t: &Tally| t.compute_ns + t.handler_ns;
    let most = outcome.tallies.iter().map(busy).max().unwrap_or(0) as f64 / 1e9;
    let mean = busy(&all) as f64 / 1e9 / ranks;
    println!(
        "{name:9} {:8.0} {:10.1} {:8.1} {:7} {:8.1} {:8.1} {:7.2} {:7.2} {:7.2}  {:?}",
        messages / ranks,
        all.compute_ns as f64 / 1e3 / messages,
        all.all_bytes() as f64 / messages,
        all.largest_bytes,
        all.barriers as f64 / ranks,
        all.waits as f64 / ranks,
        mean,
        most,
        most / mean,
        all.messages,
    );
    Ok(())
}

fn main() -> Result<(), String> {
    let ranks = std::env::args().nth(1).and_then(|ranks| ranks.parse().ok()).unwrap_or(64);
    println!("per rank: messages, computation between them (us), bytes of a message, largest, barriers, other waits,");
    println!("computation (s): mean, most, most/mean; messages of all ranks: store, post, put, get, request");
    row("column", &Column::new(&Default::default(), ranks, 1))?;
    row("em3d", &Em3d::new(&Default::default(), ranks, 1))?;
    row("sample", &Sample::new(&Default::default(), ranks, 1))?;
    Ok(())
}
