//! Sweep: the values to vary, and the grid of points that results.

use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{Change, Execution, Experiment, Failure, PlatformSource, Policy, Workload};
use super::{change, failure, listed, platform_fields};
use crate::error::{DescriptionError, Problem, nearest};
use crate::read;

/// The dotted paths that a farm's sweep may vary, including the fields of a distribution's table.
pub const SWEPT: [&str; 19] = [
    "execution.compute",
    "execution.task_retries",
    "execution.task_timeout_s",
    "execution.time_scale",
    "platform",
    "policy.adapt",
    "policy.buffer_tasks",
    "policy.chunk_kib",
    "policy.level_end",
    "policy.order",
    "policy.ports",
    "seed",
    "workload.arrival_gap_s",
    "workload.arrival_tasks",
    "workload.result_size_mb",
    "workload.task_size_mb",
    "workload.task_work",
    "workload.tasks",
    "workload.tasks_file",
];

/// Larger sweeps are rejected as mistakes.
pub const MOST_RUNS: u64 = 1_000_000;

/// Dotted path -> value of any type, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Paths<V>(pub Vec<(String, V)>);

/// Dotted path -> values to try: the last path varies fastest.
pub type Sweep = Paths<Vec<Value>>;

/// Dotted path -> the value that a sweep set.
pub type Params = Paths<Value>;

impl<V> Default for Paths<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> Paths<V> {
    /// Whether it has no paths.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the value of a path; a new path comes last.
    pub fn put(&mut self, path: &str, value: V) {
        match self.0.iter_mut().find(|(known, _)| known == path) {
            Some((_, old)) => *old = value,
            None => self.0.push((path.to_owned(), value)),
        }
    }
}

impl<V> FromIterator<(String, V)> for Paths<V> {
    fn from_iter<I: IntoIterator<Item = (String, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl<V: Serialize> Serialize for Paths<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(path, value)| (path, value)))
    }
}

// Implemented by hand to keep the order of the file.
impl<'de, V: Deserialize<'de>> Deserialize<'de> for Paths<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Table<V> {
            type Value = Paths<V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of dotted paths")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Self::Value, A::Error> {
                let mut paths: Vec<(String, V)> = Vec::new();
                while let Some(path) = table.next_key::<String>()? {
                    if paths.iter().any(|(known, _)| *known == path) {
                        return Err(A::Error::custom(format!("is a table that names {path:?} twice")));
                    }
                    paths.push((path, table.next_value()?));
                }
                Ok(Paths(paths))
            }
        }
        deserializer.deserialize_map(Table(PhantomData))
    }
}

impl<V: JsonSchema> JsonSchema for Paths<V> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Paths_of_{}", V::schema_name()).into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let values = generator.subschema_for::<V>();
        schemars::json_schema!({ "type": "object", "additionalProperties": values })
    }
}

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Point<E = Experiment> {
    /// Values set by the sweep, in the order of the file.
    pub params: Vec<(String, Value)>,
    /// Number of the repetition, from 0.
    pub repetition: u64,
    /// The experiment without a sweep; its `seed` is this run's.
    pub experiment: E,
}

/// The grid of runs of an experiment of any kind.
pub trait Grid: Clone {
    /// The dotted paths that a sweep may vary.
    const SWEPT: &'static [&'static str];
    /// Prefixes below which it may vary any path.
    const SWEPT_BELOW: &'static [&'static str];

    fn sweep(&self) -> &Sweep;
    fn sweep_mut(&mut self) -> &mut Sweep;
    /// Returns the number of runs of each point.
    fn repetitions(&self) -> u64;
    /// Returns the number of runs of each point.
    fn repetitions_mut(&mut self) -> &mut u64;
    /// Returns the seed of everything drawn at random.
    fn seed_mut(&mut self) -> &mut u64;

    /// Sets one swept field.
    ///
    /// # Errors
    /// When the field does not exist, or the value is not permitted.
    fn set(&mut self, path: &str, value: &Value) -> Result<(), DescriptionError>;

    /// Checks the fields that do not vary.
    ///
    /// # Errors
    /// The first error.
    fn check_head(&self) -> Result<(), DescriptionError>;

    /// Checks constraints between fields, without the sweep: a swept field may be missing until it is set.
    ///
    /// # Errors
    /// The first error.
    fn check_point(&self) -> Result<(), DescriptionError>;

    /// Returns the number of runs of the sweep and its repetitions; `None` beyond 2^64.
    #[must_use]
    fn runs(&self) -> Option<u64> {
        self.sweep().0.iter().try_fold(self.repetitions(), |runs, (_, values)| runs.checked_mul(values.len() as u64))
    }

    /// Yields every run: the product of the swept values in the order of the file, the last path fastest, and within
    /// each its repetitions. Repetition r has the seed `seed + r`, the same at every point, so that points differ
    /// only in the swept values.
    fn points(&self) -> impl Iterator<Item = Result<Point<Self>, DescriptionError>> {
        (0..self.runs().unwrap_or(0)).map(move |number| self.point(number))
    }

    /// Returns the run of a number below [`Grid::runs`], as [`Grid::points`] yields it.
    ///
    /// # Errors
    /// When values that are valid alone are invalid together.
    fn point(&self, number: u64) -> Result<Point<Self>, DescriptionError> {
        let repetition = number % self.repetitions();
        let mut rest = number / self.repetitions();
        let mut params = Vec::with_capacity(self.sweep().0.len());
        for (path, values) in self.sweep().0.iter().rev() {
            let count = values.len() as u64;
            params.push((path.clone(), values[(rest % count) as usize].clone()));
            rest /= count;
        }
        params.reverse();
        let mut experiment = self.alone();
        for (path, value) in &params {
            experiment.set(path, value)?;
        }
        experiment.check_point()?;
        *experiment.seed_mut() = experiment.seed_mut().wrapping_add(repetition);
        Ok(Point { params, repetition, experiment })
    }

    /// Returns a copy without the sweep and the repetitions.
    #[must_use]
    fn alone(&self) -> Self {
        let mut alone = self.clone();
        *alone.sweep_mut() = Sweep::default();
        *alone.repetitions_mut() = 1;
        alone
    }

    /// Returns the experiment with a field set for every run. Swept values of the field, or of a part of it, are
    /// dropped.
    ///
    /// # Errors
    /// When the field does not exist, or the value is not permitted.
    fn fixed(&self, path: &str, value: &Value) -> Result<Self, DescriptionError> {
        let mut fixed = self.clone();
        if path == "repetitions" {
            let set = parsed(value, path).and_then(|repetitions| {
                *fixed.repetitions_mut() = repetitions;
                fixed.check()
            });
            return set.map_err(|error| as_set(error, path, value)).map(|()| fixed);
        }
        if !Self::is_swept(path) {
            let known = || Self::SWEPT.iter().copied().chain(["repetitions"]);
            let problem =
                Problem::NotSet { nearest: nearest(path, known()), known: known().map(str::to_owned).collect() };
            return Err(problem.at(path.into()));
        }
        let below = format!("{path}.");
        fixed.sweep_mut().0.retain(|(swept, _)| swept != path && !swept.starts_with(&below));
        fixed.set(path, value).and_then(|()| fixed.check()).map_err(|error| as_set(error, path, value))?;
        Ok(fixed)
    }

    /// Checks the experiment and its sweep.
    ///
    /// # Errors
    /// The first thing that is wrong.
    fn check(&self) -> Result<(), DescriptionError> {
        self.check_head()?;
        if self.repetitions() == 0 {
            return Err(Problem::Value("is 0; it must be at least 1".into()).at("repetitions".into()));
        }
        if self.repetitions() > MOST_RUNS {
            let problem = format!("is {}; it must be 1 to {MOST_RUNS}", self.repetitions());
            return Err(Problem::Value(problem).at("repetitions".into()));
        }
        if self.sweep().is_empty() { self.check_point() } else { self.check_sweep() }
    }

    /// Checks the sweep: each value with the first value of every other path, so that a bad one is found before
    /// anything runs.
    ///
    /// # Errors
    /// The first value or path that is not permitted.
    fn check_sweep(&self) -> Result<(), DescriptionError> {
        let mut first = self.alone();
        for (path, values) in &self.sweep().0 {
            if !Self::is_swept(path) {
                return Err(Self::unknown(path));
            }
            let Some(value) = values.first() else {
                let problem = Problem::Value("is empty; a sweep needs at least one value".into());
                return Err(problem.at(format!("sweep.{path}")));
            };
            first.set(path, value)?;
        }
        for (path, values) in &self.sweep().0 {
            for value in values {
                let mut point = first.clone();
                point.set(path, value)?;
                point
                    .check_point()
                    .map_err(|error| if is_about(&error, path) { of_sweep(error, path) } else { error })?;
            }
        }
        match self.runs() {
            Some(runs) if runs <= MOST_RUNS => Ok(()),
            _ => {
                let problem = format!("makes more than {MOST_RUNS} runs, repetitions counted; take fewer values");
                Err(Problem::Value(problem).at("sweep".into()))
            }
        }
    }

    /// Whether a sweep may vary a path.
    #[must_use]
    fn is_swept(path: &str) -> bool {
        Self::SWEPT.contains(&path) || Self::SWEPT_BELOW.iter().any(|prefix| path.starts_with(prefix))
    }

    /// Returns the error for a path that a sweep may not vary.
    #[must_use]
    fn unknown(path: &str) -> DescriptionError {
        let known = Self::SWEPT.iter().map(|&known| known.to_owned()).collect();
        Problem::Unknown { nearest: nearest(path, Self::SWEPT.iter().copied()), known }.at(format!("sweep.{path}"))
    }
}

/// Accessors of the fields that every kind of experiment has.
macro_rules! shared_fields {
    () => {
        fn sweep(&self) -> &$crate::experiment::Sweep {
            &self.sweep
        }

        fn sweep_mut(&mut self) -> &mut $crate::experiment::Sweep {
            &mut self.sweep
        }

        fn repetitions(&self) -> u64 {
            self.repetitions
        }

        fn repetitions_mut(&mut self) -> &mut u64 {
            &mut self.repetitions
        }

        fn seed_mut(&mut self) -> &mut u64 {
            &mut self.seed
        }
    };
}
pub(super) use shared_fields;

impl Grid for Experiment {
    const SWEPT: &'static [&'static str] = &SWEPT;
    const SWEPT_BELOW: &'static [&'static str] = &[
        "change[",
        "failure[",
        "node[",
        "workload.arrival_gap_s.",
        "workload.class[",
        "workload.task_size_mb.",
        "workload.task_work.",
    ];

    shared_fields!();

    fn set(&mut self, path: &str, value: &Value) -> Result<(), DescriptionError> {
        if platform_fields::is_one(path) {
            platform_fields::check(path, value)?;
            self.platform_fields.put(path, value.clone());
            return Ok(());
        }
        if listed::is_into::<Change>(path) {
            self.changes = listed::with_field(&self.changes, path, value)?;
            return Ok(());
        }
        if listed::is_into::<Failure>(path) {
            self.failures = listed::with_field(&self.failures, path, value)?;
            return Ok(());
        }
        let (section, rest) = path.split_once('.').unwrap_or((path, ""));
        match section {
            "seed" => self.seed = parsed(value, path)?,
            "platform" => self.platform = parsed(value, path)?,
            "policy" => self.policy = with::<Policy>(&self.policy, rest, value, path)?,
            "workload" => self.workload = with::<Workload>(&self.workload, rest, value, path)?,
            "execution" => self.execution = with::<Execution>(&self.execution, rest, value, path)?,
            _ => return Err(Self::unknown(path)),
        }
        Ok(())
    }

    fn check_head(&self) -> Result<(), DescriptionError> {
        read::version(self.schema_version)
    }

    fn check_point(&self) -> Result<(), DescriptionError> {
        self.workload.source()?;
        self.policy.check()?;
        self.execution.check()?;
        change::check(&self.changes)?;
        for (path, value) in &self.platform_fields.0 {
            platform_fields::check(path, value)?;
        }
        if let PlatformSource::Inline(platform) = &self.platform {
            platform.check().map_err(|mut e| {
                e.field = e.field.map(|f| format!("platform.{f}"));
                e
            })?;
            let platform = platform_fields::with_fields(platform, &self.platform_fields)?;
            change::placed(&self.changes, &platform)?;
            failure::placed(&self.failures, &platform, self.seed)?;
        }
        Ok(())
    }
}

/// Whether an error is about the field that was set, a field in it, or its table; other errors are independent of it.
fn is_about(error: &DescriptionError, path: &str) -> bool {
    error.field.as_deref().is_none_or(|field| field.starts_with(path) || path.starts_with(field))
}

fn of_sweep(mut error: DescriptionError, path: &str) -> DescriptionError {
    (error.line, error.column, error.file) = (None, None, None);
    error.field = Some(format!("sweep.{path}"));
    error
}

/// Creates the error about a value that was set rather than written in a file.
fn as_set(error: DescriptionError, path: &str, value: &Value) -> DescriptionError {
    let mut error = of_sweep(error, path);
    error.field = Some(path.into());
    let several = value.is_array();
    if several || matches!(*error.problem, Problem::Syntax(_)) {
        *error.problem = Problem::NoValue { path: path.into(), value: value.to_string(), several };
    }
    error
}

/// Parses a value of a sweep.
pub(super) fn parsed<T: serde::de::DeserializeOwned>(value: &Value, path: &str) -> Result<T, DescriptionError> {
    read::json(value.to_string().as_bytes(), "").map_err(|error| of_sweep(error, path))
}

/// Returns a section with one of its fields set; indices into a list are written as `[2]`.
pub(super) fn with<T: Serialize + serde::de::DeserializeOwned>(
    section: &T,
    path: &str,
    value: &Value,
    whole_path: &str,
) -> Result<T, DescriptionError> {
    let mut whole =
        serde_json::to_value(section).map_err(|e| Problem::Syntax(e.to_string()).at(format!("sweep.{whole_path}")))?;
    let mut place = &mut whole;
    let refused = |sentence: String| Err(Problem::Value(sentence).at(format!("sweep.{whole_path}")));
    for step in path.split(['.', '[']) {
        place = match (place, step.strip_suffix(']').map(str::parse::<usize>)) {
            (Value::Object(table), None) => table.entry(step).or_insert(Value::Null),
            (Value::Array(list), Some(Ok(at))) => {
                let length = list.len();
                match list.get_mut(at) {
                    Some(place) => place,
                    None => return refused(format!("is place {at} of a list that has {length}, counted from 0")),
                }
            }
            (Value::Array(_), _) => {
                return refused("is inside a list; its places are counted from 0, as in [0]".into());
            }
            (_, Some(_)) => return refused("counts places where there is no list".into()),
            _ => {
                return refused("is inside a distribution's table, but the experiment gives a number there".into());
            }
        };
    }
    *place = value.clone();
    parsed(&whole, whole_path)
}
