//! Prints what each program (or the one named by the second argument) computes and sends on 64 ranks (or the number
//! given by the first argument) with its default parameters: the table of docs/concepts/programs.md. Run it with
//! `cargo run --release -p crosswind-program --example granularity`.
#![allow(clippy::print_stdout)]

use crosswind_program::plain::{self, Tally};
use crosswind_program::{Cholesky, Column, Connect, Em3d, Program, Sample};

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
    let mut arguments = std::env::args().skip(1);
    let ranks = arguments.next().and_then(|ranks| ranks.parse().ok()).unwrap_or(64);
    let only = arguments.next();
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    println!("per rank: messages, computation between them (us), bytes of a message, largest, barriers, other waits,");
    println!("computation (s): mean, most, most/mean; messages of all ranks: store, post, put, get, request");
    if wanted("cholesky") {
        row("cholesky", &Cholesky::new(&Default::default(), ranks, 1))?;
    }
    if wanted("column") {
        row("column", &Column::new(&Default::default(), ranks, 1))?;
    }
    if wanted("connect") {
        row("connect", &Connect::new(&Default::default(), ranks, 1))?;
    }
    if wanted("em3d") {
        row("em3d", &Em3d::new(&Default::default(), ranks, 1))?;
    }
    if wanted("sample") {
        row("sample", &Sample::new(&Default::default(), ranks, 1))?;
    }
    Ok(())
}
