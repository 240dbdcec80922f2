//! Symbolic structure: which entries the factor has, which column is subtracted from which, and what ranks exchange.
//! Known before any values.

use std::collections::BTreeMap;

use crosswind_schema::experiment::parameters::CholeskyParameters;

use super::dissection::Dissection;
use super::matrix::Matrix;

/// Target of a column's subtraction: a column of the same owner, or a sum for a column of another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    Column(u32),
    Sum(u32),
}

#[derive(Debug)]
pub(super) struct Column {
    pub point: u32,
    pub owner: u32,
    /// Index among the columns of its owner.
    pub place: u32,
    /// Rows of its entries: the diagonal's first, then those below.
    pub rows: Box<[u32]>,
    /// For each row below the diagonal, the target from which the column's part from that row on is subtracted.
    pub targets: Box<[Target]>,
    /// Number of sums from other ranks.
    pub sums: u32,
}

/// The sum that one rank subtracts from a column of another.
#[derive(Debug)]
pub(super) struct Sum {
    pub from: u32,
    /// Index among the sums of that rank.
    pub place: u32,
    pub column: u32,
    pub rows: Box<[u32]>,
    /// Number of columns in this sum.
    pub parts: u32,
}

#[derive(Debug)]
pub(super) struct Structure {
    pub matrix: Matrix,
    pub columns: Vec<Column>,
    pub sums: Vec<Sum>,
    /// Columns of each rank, ascending.
    pub own: Vec<Vec<u32>>,
    pub own_sums: Vec<Vec<u32>>,
    /// Number of the column of each point.
    column_of: Vec<u32>,
}

impl Structure {
    pub fn new(parameters: &CholeskyParameters, ranks: u32, seed: u64) -> Self {
        let (width, length) = (parameters.grid_width.get() as u32, parameters.grid_length.get() as u32);
        let matrix = Matrix { width, length, seed };
        let order = Dissection::new(width, length, parameters.panel_columns.get() as u32, ranks, seed).points;
        let mut column_of = vec![0; order.len()];
        for (column, (point, _)) in order.iter().enumerate() {
            column_of[*point as usize] = column as u32;
        }
        let rows = rows(matrix, &order, &column_of);
        let mut own = vec![Vec::new(); ranks as usize];
        let mut columns: Vec<Column> = Vec::with_capacity(order.len());
        for ((column, rows), (point, owner)) in rows.into_iter().enumerate().zip(&order) {
            let place = own[*owner as usize].len() as u32;
            own[*owner as usize].push(column as u32);
            columns.push(Column {
                point: *point,
                owner: *owner,
                place,
                rows: rows.into(),
                targets: Box::default(),
                sums: 0,
            });
        }
        let mut structure =
            Self { matrix, columns, sums: Vec::new(), own, own_sums: vec![Vec::new(); ranks as usize], column_of };
        structure.add_up();
        structure
    }

    /// Determines which rank owes which other rank a sum, and of which columns.
    fn add_up(&mut self) {
        let mut gathered: BTreeMap<(u32, u32), (Vec<u32>, u32)> = BTreeMap::new();
        for column in &self.columns {
            for (at, target) in column.rows.iter().enumerate().skip(1) {
                if self.columns[*target as usize].owner != column.owner {
                    let (rows, parts) = gathered.entry((column.owner, *target)).or_default();
                    rows.extend_from_slice(&column.rows[at..]);
                    rows.sort_unstable();
                    rows.dedup();
                    *parts += 1;
                }
            }
        }
        let mut number_of = BTreeMap::new();
        for ((from, column), (rows, parts)) in gathered {
            let number = self.sums.len() as u32;
            number_of.insert((from, column), number);
            let place = self.own_sums[from as usize].len() as u32;
            self.own_sums[from as usize].push(number);
            self.columns[column as usize].sums += 1;
            self.sums.push(Sum { from, place, column, rows: rows.into(), parts });
        }
        for number in 0..self.columns.len() {
            let column = &self.columns[number];
            let target = |row: &u32| match number_of.get(&(column.owner, *row)) {
                Some(sum) if self.columns[*row as usize].owner != column.owner => Target::Sum(*sum),
                _ => Target::Column(*row),
            };
            self.columns[number].targets = column.rows[1..].iter().map(target).collect();
        }
    }

    /// Returns the entries of matrix `number` in a column, as the factor stores them, diagonal first.
    pub fn load(&self, number: u64, column: &Column) -> Vec<f64> {
        let mut values = vec![0.0; column.rows.len()];
        values[0] = self.matrix.entry(number, column.point, column.point);
        for neighbour in self.matrix.neighbours(column.point) {
            if let Ok(place) = column.rows.binary_search(&self.column_of[neighbour as usize]) {
                values[place] = self.matrix.entry(number, column.point, neighbour);
            }
        }
        values
    }

    /// Returns the factor of matrix `number`, column by column, computed sequentially.
    pub fn plain(&self, number: u64) -> Vec<Vec<f64>> {
        let mut factor: Vec<Vec<f64>> = self.columns.iter().map(|column| self.load(number, column)).collect();
        for (number, column) in self.columns.iter().enumerate() {
            let mut values = std::mem::take(&mut factor[number]);
            divide(&mut values);
            for (at, target) in column.rows.iter().enumerate().skip(1) {
                let target_rows = &self.columns[*target as usize].rows;
                subtract(&mut factor[*target as usize], target_rows, &values[at..], &column.rows[at..]);
            }
            factor[number] = values;
        }
        factor
    }
}

/// Turns a column from which everything has been subtracted into a column of the factor.
pub(super) fn divide(values: &mut [f64]) {
    let diagonal = values[0].sqrt();
    values[0] = diagonal;
    values[1..].iter_mut().for_each(|value| *value /= diagonal);
}

/// Subtracts a part of a column times its first entry. `rows` is a subset of `target_rows`, both ascending.
pub(super) fn subtract(target: &mut [f64], target_rows: &[u32], part: &[f64], rows: &[u32]) {
    let factor = part[0];
    let mut at = 0;
    for (row, value) in rows.iter().zip(part) {
        while target_rows[at] < *row {
            at += 1;
        }
        target[at] -= factor * value;
    }
}

/// Adds a sum of another rank to a column.
pub(super) fn add(target: &mut [f64], target_rows: &[u32], sum: impl Iterator<Item = f64>, rows: &[u32]) {
    let mut at = 0;
    for (row, value) in rows.iter().zip(sum) {
        while target_rows[at] < *row {
            at += 1;
        }
        target[at] += value;
    }
}

/// Returns the rows of the factor's columns: those of the matrix, plus the rows below the diagonal of every column
/// whose first row below is this column.
fn rows(matrix: Matrix, order: &[(u32, u32)], column_of: &[u32]) -> Vec<Vec<u32>> {
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); order.len()];
    for (column, (point, _)) in order.iter().enumerate() {
        let mut mine = std::mem::take(&mut rows[column]);
        mine.push(column as u32);
        mine.extend(matrix.neighbours(*point).map(|point| column_of[point as usize]));
        mine.sort_unstable();
        mine.dedup();
        mine.drain(..mine.partition_point(|row| (*row as usize) < column));
        if let Some(parent) = mine.get(1) {
            rows[*parent as usize].extend_from_slice(&mine[1..]);
        }
        rows[column] = mine;
    }
    rows
}

#[cfg(test)]
mod tests {
    use crosswind_schema::experiment::parameters::Whole;

    use super::*;

    fn small(ranks: u32) -> Structure {
        let parameters = CholeskyParameters {
            grid_width: Whole::fixed(5),
            grid_length: Whole::fixed(9),
            panel_columns: Whole::fixed(2),
            ..CholeskyParameters::default()
        };
        Structure::new(&parameters, ranks, 3)
    }

    #[test]
    fn the_plain_factor_times_itself_is_the_matrix() {
        let structure = small(4);
        let n = structure.columns.len();
        let mut product = vec![vec![0.0; n]; n];
        for (values, column) in structure.plain(2).iter().zip(&structure.columns) {
            for (a, row_a) in values.iter().zip(&column.rows) {
                for (b, row_b) in values.iter().zip(&column.rows) {
                    product[*row_a as usize][*row_b as usize] += a * b;
                }
            }
        }
        for (row, values) in product.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                let [a, b] = [row, column].map(|at| structure.columns[at].point);
                let joined = a == b || structure.matrix.neighbours(a).any(|point| point == b);
                let wanted = if joined { structure.matrix.entry(2, a, b) } else { 0.0 };
                assert!((value - wanted).abs() < 1e-12, "{row} {column}: {value} instead of {wanted}");
            }
        }
    }

    #[test]
    fn sums_hold_what_other_ranks_subtract_and_nothing_else() {
        assert!(small(1).sums.is_empty());
        let structure = small(4);
        assert!(!structure.sums.is_empty());
        for sum in &structure.sums {
            let column = &structure.columns[sum.column as usize];
            assert_ne!(sum.from, column.owner);
            assert_eq!(sum.rows[0], sum.column);
            assert!(sum.rows.iter().all(|row| column.rows.contains(row)));
        }
        let told: u32 = structure.columns.iter().map(|column| column.sums).sum();
        assert_eq!(told as usize, structure.sums.len());
    }
}
