//! A continuous piecewise-linear function of a rate, 0 at 0, up to the end of its domain.

use crosswind_schema::platform::Loss;
use crosswind_schema::units::Quantity;

type Point = (f64, f64);

/// Losses are capped at this: everything above 1 forbids a rate anyway, and products must not overflow.
const MOST: f64 = 1e50;

/// Points with strictly ascending rates, the first at 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve(Vec<Point>);

impl Curve {
    /// Creates `slope * x` up to `end`.
    pub fn line(slope: f64, end: f64) -> Self {
        Self(vec![(0.0, 0.0), (end, slope * end)]).cut(end)
    }

    /// Creates the fraction of the compute rate lost by tasks of `size_mb` MB, as a function of tasks/s. Reads the
    /// measured losses like [`Loss::chord_s_per_mb`].
    pub fn measured(losses: &[Loss], size_mb: f64, end: f64) -> Self {
        let mut points = vec![(0.0, 0.0)];
        points.extend(losses.iter().map(|loss| (loss.0.get() / size_mb, loss.1.get().min(MOST))));
        points.dedup_by(|later, earlier| later.0 <= earlier.0); // rates that differ by rounding
        if let Some(&(last, lost)) = points.last().filter(|(last, _)| *last < end) {
            points.push((end, lost / last * end));
        }
        Self(points).cut(end)
    }

    /// Returns the same function up to `end`, which lies within the domain.
    pub fn cut(&self, end: f64) -> Self {
        let inside = self.0.iter().skip(1).copied().filter(|(x, _)| *x < end);
        let mut points: Vec<Point> = [(0.0, 0.0)].into_iter().chain(inside).collect();
        if end > 0.0 {
            points.push((end, self.at(end)));
        }
        Self(points)
    }

    pub fn end(&self) -> f64 {
        self.0.last().map_or(0.0, |point| point.0)
    }

    pub fn points(&self) -> &[Point] {
        &self.0
    }

    /// Returns `slope x + factor f(x)`.
    pub fn combined(&self, slope: f64, factor: f64) -> Self {
        Self(self.0.iter().map(|&(x, y)| (x, slope * x + factor * y)).collect())
    }

    /// Returns the value at a rate. Beyond the domain, extends the last line.
    pub fn at(&self, x: f64) -> f64 {
        let Some(below) = self.segment(x, |point, x| point < x) else { return 0.0 };
        on_line(self.0[below], self.0[below + 1], x)
    }

    /// Returns the slope just above `x`; at the end and beyond, that of the last line.
    pub fn slope_after(&self, x: f64) -> f64 {
        self.segment(x, |point, x| point <= x).map_or(0.0, |at| slope(self.0[at], self.0[at + 1]))
    }

    /// Returns the slope just below `x`.
    pub fn slope_before(&self, x: f64) -> f64 {
        self.segment(x, |point, x| point < x).map_or(0.0, |at| slope(self.0[at], self.0[at + 1]))
    }

    /// Returns the index of the line that contains `x`. `is_below(point, x)` decides which points lie before it.
    fn segment(&self, x: f64, is_below: impl Fn(f64, f64) -> bool) -> Option<usize> {
        let lines = self.0.len().checked_sub(2)?;
        Some(self.0.partition_point(|point| is_below(point.0, x)).saturating_sub(1).min(lines))
    }

    /// Returns the largest `x` in `low..=high` at which the value is at most `level`.
    pub fn last_at_most(&self, level: f64, low: f64, high: f64) -> Option<f64> {
        let mut above = (high, self.at(high));
        if above.1 <= level {
            return Some(high);
        }
        let inside = self.0.iter().rev().copied().filter(|point| low < point.0 && point.0 < high);
        for below in inside.chain([(low, self.at(low))]) {
            if below.1 <= level {
                return Some(crossing(below, above, level));
            }
            above = below;
        }
        None
    }

    /// Returns the ranges within `low..=high` in which the value is at most `level`, ascending.
    pub fn ranges_at_most(&self, level: f64, low: f64, high: f64) -> Vec<Point> {
        let mut rates = vec![low];
        rates.extend(self.0.iter().map(|point| point.0).filter(|&x| low < x && x < high));
        rates.push(high);
        let mut found: Vec<Point> = Vec::new();
        let mut add = |from: f64, to: f64| match found.last_mut() {
            Some(last) if last.1 >= from => last.1 = to,
            _ => found.push((from, to)),
        };
        for pair in rates.windows(2) {
            let (from, to) = ((pair[0], self.at(pair[0])), (pair[1], self.at(pair[1])));
            match (from.1 <= level, to.1 <= level) {
                (true, true) => add(from.0, to.0),
                (true, false) => add(from.0, crossing(from, to, level)),
                (false, true) => add(crossing(from, to, level), to.0),
                (false, false) => {}
            }
        }
        found
    }

    /// Returns the same function with a line over each of these ranges.
    pub fn bridged(&self, ranges: &[Point]) -> Self {
        let mut points = self.0.clone();
        for &(from, to) in ranges.iter().filter(|range| range.1 <= self.end()) {
            let ends = [(from, self.at(from)), (to, self.at(to))];
            points.retain(|point| point.0 < from || to < point.0);
            let at = points.partition_point(|point| point.0 < from);
            points.splice(at..at, ends);
        }
        Self(points)
    }

    /// Returns the greatest value at any rate up to each: the smallest non-decreasing function above this one.
    pub fn rising(&self) -> Self {
        let mut points: Vec<Point> = Vec::with_capacity(self.0.len());
        let mut most = 0.0f64;
        for pair in self.0.windows(2) {
            if points.is_empty() {
                points.push(pair[0]);
            }
            if pair[1].1 > most {
                if pair[0].1 < most {
                    points.push((crossing(pair[0], pair[1], most), most));
                }
                most = pair[1].1;
            }
            points.push((pair[1].0, most));
        }
        points.dedup_by(|later, earlier| later.0 <= earlier.0);
        if points.is_empty() { self.clone() } else { Self(points) }
    }

    pub fn is_rising(&self) -> bool {
        self.0.windows(2).all(|pair| pair[0].1 <= pair[1].1)
    }

    /// Returns the greatest convex function below this one.
    pub fn convex_hull(&self) -> Self {
        let mirrored: Vec<Point> = self.0.iter().map(|&(x, y)| (x, -y)).collect();
        Self(hull(mirrored).into_iter().map(|(x, y)| (x, -y)).collect())
    }

    /// Returns the points of the least concave function above this one within `low..=high`.
    pub fn concave_hull(&self, low: f64, high: f64) -> Vec<Point> {
        let mut points = vec![(low, self.at(low))];
        points.extend(self.0.iter().copied().filter(|point| low < point.0 && point.0 < high));
        if high > low {
            points.push((high, self.at(high)));
        }
        hull(points)
    }

    /// Returns the point strictly between two rates that is nearest to `x`.
    pub fn nearest_point(&self, x: f64, (low, high): (f64, f64)) -> Option<f64> {
        let between = self.0.iter().map(|point| point.0).filter(|&at| low < at && at < high);
        between.min_by(|a, b| (a - x).abs().total_cmp(&(b - x).abs()))
    }
}

pub(super) fn slope(a: Point, b: Point) -> f64 {
    (b.1 - a.1) / (b.0 - a.0)
}

fn on_line(a: Point, b: Point, x: f64) -> f64 {
    if x == b.0 { b.1 } else { a.1 + (x - a.0) * slope(a, b) }
}

/// Returns where the line between two points reaches a level between theirs.
fn crossing(a: Point, b: Point, level: f64) -> f64 {
    (a.0 + (b.0 - a.0) * ((level - a.1) / (b.1 - a.1))).clamp(a.0, b.0)
}

/// Returns the upper hull of points with ascending rates.
fn hull(points: Vec<Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::with_capacity(points.len());
    for point in points {
        while let [.., a, b] = kept[..] {
            if slope(a, b) > slope(b, point) {
                break;
            }
            kept.pop();
        }
        kept.push(point);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zigzag() -> Curve {
        Curve(vec![(0.0, 0.0), (1.0, 3.0), (2.0, 1.0), (4.0, 5.0)])
    }

    #[test]
    fn a_curve_is_read_between_its_points_and_beyond_them() {
        let curve = zigzag();
        assert_eq!([0.0, 0.5, 1.0, 1.5, 3.0, 4.0, 5.0].map(|x| curve.at(x)), [0.0, 1.5, 3.0, 2.0, 3.0, 5.0, 7.0]);
        assert_eq!((curve.slope_before(1.0), curve.slope_after(1.0)), (3.0, -2.0));
        assert_eq!(curve.cut(1.5).points(), [(0.0, 0.0), (1.0, 3.0), (1.5, 2.0)]);
        assert_eq!(curve.cut(0.0).points(), [(0.0, 0.0)]);
        assert_eq!((Curve::line(2.0, 0.0).at(1.0), Curve::measured(&[], 1.0, 0.0).at(1.0)), (0.0, 0.0));
    }

    #[test]
    fn the_last_rate_below_a_level_is_found_past_a_rise() {
        let curve = zigzag();
        assert_eq!(curve.last_at_most(2.0, 0.0, 4.0), Some(2.5));
        assert_eq!(curve.last_at_most(0.5, 0.0, 4.0), Some(0.5 / 3.0));
        assert_eq!(curve.last_at_most(0.5, 1.0, 4.0), None);
        assert_eq!(curve.last_at_most(9.0, 0.0, 4.0), Some(4.0));
    }

    #[test]
    fn ranges_below_a_level_are_found_and_bridged() {
        let curve = zigzag();
        assert_eq!(curve.ranges_at_most(1.5, 0.0, 4.0), [(0.0, 0.5), (1.75, 2.25)]);
        assert_eq!(curve.ranges_at_most(1.5, 2.0, 4.0), [(2.0, 2.25)]);
        assert_eq!(curve.ranges_at_most(3.0, 0.0, 4.0), [(0.0, 3.0)]);
        assert_eq!(curve.ranges_at_most(0.5, 1.0, 4.0), []);
        assert_eq!(
            curve.bridged(&[(0.5, 1.75)]).points(),
            [(0.0, 0.0), (0.5, 1.5), (1.75, 1.5), (2.0, 1.0), (4.0, 5.0)]
        );
    }

    #[test]
    fn hulls_and_the_rising_curve_enclose_it() {
        let curve = zigzag();
        assert_eq!(curve.convex_hull().points(), [(0.0, 0.0), (2.0, 1.0), (4.0, 5.0)]);
        assert_eq!(curve.concave_hull(0.0, 4.0), [(0.0, 0.0), (1.0, 3.0), (4.0, 5.0)]);
        assert_eq!(curve.rising().points(), [(0.0, 0.0), (1.0, 3.0), (2.0, 3.0), (3.0, 3.0), (4.0, 5.0)]);
        assert!(curve.rising().is_rising() && !curve.is_rising());
    }
}
