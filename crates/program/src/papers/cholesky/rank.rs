//! One rank of CHOLESKY: finishes the columns of a matrix in order, each once all contributions of other ranks have
//! arrived, oldest matrix first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crosswind_schema::experiment::parameters::CholeskyParameters;

use super::structure::{Structure, Target, add, divide, subtract};
use crate::op::{Body, Kind, Op};
use crate::rank::{Rank, Reply};

const ADDRESS_BYTES: u32 = 4;
const INTEGER_BYTES: u32 = 4;
const VALUE_BYTES: u32 = 8;

#[derive(Debug)]
struct UnderWay {
    number: u64,
    columns: Vec<Vec<f64>>,
    /// For each own column, the number of sums of other ranks still missing.
    missing: Vec<u32>,
    /// Sums for columns of other ranks, and how many parts each still lacks.
    sums: Vec<(Vec<f64>, u32)>,
    /// Number of sums not yet fetched.
    unfetched: usize,
    at: usize,
}

/// Outstanding messages between this rank and another.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    unfetched: u64,
    unanswered: u64,
}

#[derive(Debug)]
pub struct CholeskyRank {
    structure: Arc<Structure>,
    parameters: CholeskyParameters,
    me: u32,
    under_way: VecDeque<UnderWay>,
    /// The next matrix to start.
    next: u64,
    /// Completed own sums to announce to their owners: sum and matrix.
    complete: VecDeque<(u32, u64)>,
    /// Completed sums of others, to be fetched once their matrix is in progress here.
    told: Vec<(u32, u64)>,
    /// By rank, if not zero: own sums announced to it that it has not fetched, and own gets that it has not answered.
    open: BTreeMap<u32, Open>,
    /// Multiplications and additions done but not yet charged as computing time.
    owed: u64,
    /// Own columns of the last matrix.
    last: Vec<Vec<f64>>,
}

impl CholeskyRank {
    pub(super) fn new(structure: Arc<Structure>, parameters: &CholeskyParameters, me: u32) -> Self {
        Self {
            structure,
            parameters: parameters.clone(),
            me,
            under_way: VecDeque::new(),
            next: 0,
            complete: VecDeque::new(),
            told: Vec::new(),
            open: BTreeMap::new(),
            owed: 0,
            last: Vec::new(),
        }
    }

    /// Starts the next matrix if there is one and not too many are in progress. Returns whether it did.
    fn begin(&mut self) -> bool {
        let parameters = &self.parameters;
        if self.next == parameters.matrices.get() || self.under_way.len() as u64 >= parameters.matrices_at_once.get() {
            return false;
        }
        let structure = &self.structure;
        let own = structure.own[self.me as usize].iter().map(|column| &structure.columns[*column as usize]);
        let sums = structure.own_sums[self.me as usize].iter().map(|sum| &structure.sums[*sum as usize]);
        self.owed +=
            own.clone().map(|column| 1 + structure.matrix.neighbours(column.point).count() as u64).sum::<u64>();
        self.under_way.push_back(UnderWay {
            number: self.next,
            columns: own.clone().map(|column| structure.load(self.next, column)).collect(),
            missing: own.map(|column| column.sums).collect(),
            unfetched: sums.len(),
            sums: sums.map(|sum| (vec![0.0; sum.rows.len()], sum.parts)).collect(),
            at: 0,
        });
        self.next += 1;
        true
    }

    /// Finishes the next column of a matrix and subtracts it from its targets.
    fn finish(&mut self, slot: usize) {
        let matrix = &mut self.under_way[slot];
        let own = &self.structure.own[self.me as usize];
        let column = &self.structure.columns[own[matrix.at] as usize];
        let mut values = std::mem::take(&mut matrix.columns[matrix.at]);
        divide(&mut values);
        self.owed += values.len() as u64;
        for (first, target) in (1..).zip(&*column.targets) {
            let (part, rows) = (&values[first..], &column.rows[first..]);
            self.owed += part.len() as u64;
            match target {
                Target::Column(target) => {
                    let target = &self.structure.columns[*target as usize];
                    subtract(&mut matrix.columns[target.place as usize], &target.rows, part, rows);
                }
                Target::Sum(number) => {
                    let sum = &self.structure.sums[*number as usize];
                    let (so_far, parts_left) = &mut matrix.sums[sum.place as usize];
                    subtract(so_far, &sum.rows, part, rows);
                    *parts_left -= 1;
                    if *parts_left == 0 {
                        self.complete.push_back((*number, matrix.number));
                    }
                }
            }
        }
        matrix.columns[matrix.at] = values;
        matrix.at += 1;
        self.forget(slot);
    }

    /// Frees a matrix that is no longer needed.
    fn forget(&mut self, slot: usize) {
        let matrix = &self.under_way[slot];
        if matrix.at == matrix.columns.len() && matrix.unfetched == 0 {
            if let Some(matrix) = self.under_way.remove(slot) {
                if matrix.number + 1 == self.parameters.matrices.get() {
                    self.last = matrix.columns;
                }
            }
        }
    }

    fn slot(&self, matrix: u64) -> Option<usize> {
        self.under_way.iter().position(|under_way| under_way.number == matrix)
    }

    fn open(&self, with: u32) -> Open {
        self.open.get(&with).copied().unwrap_or_default()
    }

    /// Updates the outstanding messages with a rank.
    fn note(&mut self, with: u32, change: impl FnOnce(&mut Open)) {
        let open = self.open.entry(with).or_default();
        change(open);
        if open.unfetched == 0 && open.unanswered == 0 {
            self.open.remove(&with);
        }
    }

    /// Returns the message that announces the next sum to its owner. The owner fetches one before the next is
    /// announced, so a message seldom waits for the credit of the previous one.
    fn tell(&mut self) -> Option<Op> {
        let owner = |number: u32| self.structure.columns[self.structure.sums[number as usize].column as usize].owner;
        let most = self.parameters.sums_at_once.get();
        let at = self.complete.iter().position(|(number, _)| {
            let open = self.open(owner(*number));
            open.unfetched + open.unanswered < most
        })?;
        let (number, matrix) = self.complete.remove(at)?;
        let to = owner(number);
        self.note(to, |open| open.unfetched += 1);
        Some(message(to, Kind::Store, number, matrix))
    }

    /// Returns the get of the next sum to fetch, of a matrix in progress here. It does not depend on what the other
    /// rank has not fetched: otherwise two ranks could wait for each other.
    fn fetch(&mut self) -> Option<Op> {
        let from = |number: u32| self.structure.sums[number as usize].from;
        let most = self.parameters.sums_at_once.get();
        let may =
            |(number, matrix): &(u32, u64)| self.open(from(*number)).unanswered < most && self.slot(*matrix).is_some();
        let at = self.told.iter().position(may)?;
        let (number, matrix) = self.told.remove(at);
        let to = from(number);
        self.note(to, |open| open.unanswered += 1);
        Some(message(to, Kind::Get, number, matrix))
    }

    fn work(&mut self) -> Op {
        Op::Compute { ns: self.parameters.operation_s.ns(std::mem::take(&mut self.owed)) }
    }
}

impl Rank for CholeskyRank {
    fn next(&mut self) -> Op {
        if self.owed > 0 {
            return self.work();
        }
        // Announced sums are fetched first, so that the announcement of an own sum does not precede the get of one of
        // the other rank's sums.
        if let Some(op) = self.fetch().or_else(|| self.tell()) {
            return op;
        }
        let ready = |matrix: &UnderWay| matrix.missing.get(matrix.at) == Some(&0);
        if let Some(slot) = self.under_way.iter().position(ready) {
            self.finish(slot);
            return self.work();
        }
        if self.begin() {
            if self.structure.own[self.me as usize].is_empty() {
                self.forget(self.under_way.len() - 1);
            }
            return self.work();
        }
        if self.under_way.is_empty() { Op::Done } else { Op::Wait }
    }

    fn handle(&mut self, from: u32, kind: Kind, body: Body) -> Reply {
        let Body::Pair([number, matrix]) = body else { return Reply::default() };
        if kind == Kind::Store {
            self.told.push((number as u32, matrix));
            return Reply::default();
        }
        self.note(from, |open| open.unfetched = open.unfetched.saturating_sub(1));
        let Some(slot) = self.slot(matrix) else { return Reply::default() };
        let place = self.structure.sums[number as usize].place as usize;
        let values = std::mem::take(&mut self.under_way[slot].sums[place].0);
        self.under_way[slot].unfetched -= 1;
        self.forget(slot);
        let bytes = ADDRESS_BYTES + VALUE_BYTES * values.len() as u32;
        let words = [number, matrix].into_iter().chain(values.iter().map(|value| value.to_bits()));
        Reply { ns: 0, bytes, body: Body::Words(words.collect()) }
    }

    fn answered(&mut self, from: u32, body: Body) {
        self.note(from, |open| open.unanswered = open.unanswered.saturating_sub(1));
        let Body::Words(words) = body else { return };
        let [number, matrix, values @ ..] = &*words else { return };
        let Some(slot) = self.slot(*matrix) else { return };
        let sum = &self.structure.sums[*number as usize];
        let column = &self.structure.columns[sum.column as usize];
        let values = values.iter().map(|bits| f64::from_bits(*bits));
        let place = column.place as usize;
        add(&mut self.under_way[slot].columns[place], &column.rows, values, &sum.rows);
        self.under_way[slot].missing[place] -= 1;
        self.owed += sum.rows.len() as u64;
    }

    fn result(&self) -> Vec<u64> {
        self.last.iter().flatten().map(|value| value.to_bits()).collect()
    }
}

/// Announces a completed sum, or requests one.
fn message(to: u32, kind: Kind, number: u32, matrix: u64) -> Op {
    let body = Body::Pair([u64::from(number), matrix]);
    Op::Message { to, kind, bytes: (ADDRESS_BYTES + INTEGER_BYTES).into(), body }
}
