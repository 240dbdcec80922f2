//! One rank of CHOLESKY: its columns in their order, each when all is there that other ranks subtract from it.

use std::collections::VecDeque;
use std::sync::Arc;

use crosswind_schema::experiment::parameters::CholeskyParameters;

use super::structure::{Structure, Target, add, divide, subtract};
use crate::op::{Body, Kind, Op};
use crate::rank::{Rank, Reply};

const ADDRESS_BYTES: u32 = 4;
const INTEGER_BYTES: u32 = 4;
const VALUE_BYTES: u32 = 8;

/// One rank of [`super::Cholesky`].
#[derive(Debug)]
pub struct CholeskyRank {
    structure: Arc<Structure>,
    parameters: CholeskyParameters,
    me: u32,
    /// Values of own columns.
    columns: Vec<Vec<f64>>,
    /// Sums of other ranks that own columns still wait for.
    missing: Vec<u32>,
    /// Sums for columns of other ranks, and how many parts they lack.
    sums: Vec<(Vec<f64>, u32)>,
    /// Own sums that are complete, to be told.
    complete: VecDeque<u32>,
    /// Sums of others that are complete, to be fetched.
    told: VecDeque<u32>,
    fetching: u32,
    /// Multiplications and additions done and not yet computed.
    owed: u64,
    matrix: u64,
    /// The next own column, once the matrix is loaded.
    at: Option<usize>,
}

impl CholeskyRank {
    pub(super) fn new(structure: Arc<Structure>, parameters: &CholeskyParameters, me: u32) -> Self {
        Self {
            structure,
            parameters: parameters.clone(),
            me,
            columns: Vec::new(),
            missing: Vec::new(),
            sums: Vec::new(),
            complete: VecDeque::new(),
            told: VecDeque::new(),
            fetching: 0,
            owed: 0,
            matrix: 0,
            at: None,
        }
    }

    fn own(&self) -> &[u32] {
        &self.structure.own[self.me as usize]
    }

    fn load(&mut self) {
        let structure = &self.structure;
        let own = structure.own[self.me as usize].iter().map(|column| &structure.columns[*column as usize]);
        self.columns = own.clone().map(|column| structure.load(self.matrix, column)).collect();
        self.missing = own.clone().map(|column| column.sums).collect();
        self.owed += own.map(|column| 1 + structure.matrix.neighbours(column.point).count() as u64).sum::<u64>();
        let sums = structure.own_sums[self.me as usize].iter().map(|sum| &structure.sums[*sum as usize]);
        self.sums = sums.map(|sum| (vec![0.0; sum.rows.len()], sum.parts)).collect();
        self.at = Some(0);
    }

    /// Finishes own column `at`, and subtracts it from what it must be subtracted from.
    fn finish(&mut self, at: usize) {
        let column = &self.structure.columns[self.own()[at] as usize];
        let mut values = std::mem::take(&mut self.columns[at]);
        divide(&mut values);
        self.owed += values.len() as u64;
        for (first, target) in (1..).zip(&*column.targets) {
            let (part, rows) = (&values[first..], &column.rows[first..]);
            self.owed += part.len() as u64;
            match target {
                Target::Column(target) => {
                    let target = &self.structure.columns[*target as usize];
                    subtract(&mut self.columns[target.place as usize], &target.rows, part, rows);
                }
                Target::Sum(number) => {
                    let sum = &self.structure.sums[*number as usize];
                    let (so_far, parts_left) = &mut self.sums[sum.place as usize];
                    subtract(so_far, &sum.rows, part, rows);
                    *parts_left -= 1;
                    if *parts_left == 0 {
                        self.complete.push_back(*number);
                    }
                }
            }
        }
        self.columns[at] = values;
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
        if let Some(number) = self.complete.pop_front() {
            let sum = &self.structure.sums[number as usize];
            let to = self.structure.columns[sum.column as usize].owner;
            let bytes = ADDRESS_BYTES + INTEGER_BYTES;
            return Op::Message { to, kind: Kind::Store, bytes, body: Body::Pair([u64::from(number), 0]) };
        }
        if self.matrix == self.parameters.matrices.get() {
            return Op::Done;
        }
        let Some(at) = self.at else {
            self.load();
            return self.work();
        };
        if let Some(number) = self.told.pop_front() {
            self.fetching += 1;
            let to = self.structure.sums[number as usize].from;
            let bytes = ADDRESS_BYTES + INTEGER_BYTES;
            return Op::Message { to, kind: Kind::Get, bytes, body: Body::Pair([u64::from(number), 0]) };
        }
        match self.missing.get(at) {
            Some(0) => {
                self.finish(at);
                self.at = Some(at + 1);
                self.work()
            }
            Some(_) if self.fetching > 0 => Op::Sync,
            Some(_) => Op::Wait,
            None => {
                self.matrix += 1;
                self.at = None;
                Op::Barrier
            }
        }
    }

    fn handle(&mut self, _from: u32, kind: Kind, body: Body) -> Reply {
        let Body::Pair([number, _]) = body else { return Reply::default() };
        if kind == Kind::Store {
            self.told.push_back(number as u32);
            return Reply::default();
        }
        let (values, _) = &self.sums[self.structure.sums[number as usize].place as usize];
        let bytes = ADDRESS_BYTES + VALUE_BYTES * values.len() as u32;
        let words = std::iter::once(number).chain(values.iter().map(|value| value.to_bits()));
        Reply { ns: 0, bytes, body: Body::Words(words.collect()) }
    }

    fn answered(&mut self, _from: u32, body: Body) {
        let Body::Words(words) = body else { return };
        let [number, values @ ..] = &*words else { return };
        let sum = &self.structure.sums[*number as usize];
        let column = &self.structure.columns[sum.column as usize];
        let values = values.iter().map(|bits| f64::from_bits(*bits));
        add(&mut self.columns[column.place as usize], &column.rows, values, &sum.rows);
        self.missing[column.place as usize] -= 1;
        self.fetching -= 1;
        self.owed += sum.rows.len() as u64;
    }

    fn result(&self) -> Vec<u64> {
        self.columns.iter().flatten().map(|value| value.to_bits()).collect()
    }
}
