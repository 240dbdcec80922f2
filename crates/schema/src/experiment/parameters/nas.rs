//! Parameters of the communication skeletons of NAS kernels (communication-interactions, section 4; docs/concepts/programs.md).
//!
//! Sizes are given as powers of two, as the kernels need them. `operation_s` is the time of one operation on a
//! workstation of the time.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Cost, Whole};
use crate::error::{DescriptionError, Problem};
use crate::read;

/// Number of other hosts to which each host of MG sends in an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Partners {
    /// At most three, whatever the number of hosts: matches the paper's counts of messages.
    #[default]
    Three,
    /// All of them, as in the paper's text; on more than four hosts that sends more than the paper counted.
    All,
}

/// MG: multigrid on a cube, in V-cycles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MgParameters {
    /// Points of the cube along each side, as a power of two.
    pub side_log2: Whole<2, 12>,
    /// Number of V-cycles to run.
    pub cycles: Whole<1, 100_000>,
    /// Number of other hosts to which each host sends in an exchange.
    pub partners: Partners,
    /// Time of a floating-point operation, 58 for each point and cycle, 0 to 1 s.
    pub operation_s: Cost,
}

/// Approximate floating-point operation of an UltraSparc of 1996: 33 Mflop/s.
const FLOATING: Cost = Cost::fixed(3e-8);

impl Default for MgParameters {
    fn default() -> Self {
        Self { side_log2: Whole::fixed(7), cycles: Whole::fixed(4), partners: Partners::Three, operation_s: FLOATING }
    }
}

/// FT: fast Fourier transforms of a cube of complex numbers. Each has two phases of computation, with a transposition
/// after each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FtParameters {
    /// Points of the cube, 16 bytes each, as a power of two.
    pub points_log2: Whole<1, 28>,
    /// Inverse transforms, each with a checksum at its end; one forward transform precedes them.
    pub iterations: Whole<1, 100_000>,
    /// Time of a floating-point operation, 5 n log2 n for a transform of n points, 0 to 1 s.
    pub operation_s: Cost,
}

impl Default for FtParameters {
    fn default() -> Self {
        Self { points_log2: Whole::fixed(21), iterations: Whole::fixed(6), operation_s: FLOATING }
    }
}

/// EP: pairs of random numbers, different ones on each host; at the end all send 44 bytes to one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EpParameters {
    /// Pairs, as a power of two.
    pub pairs_log2: Whole<1, 40>,
    /// Time of a floating-point operation, 100 for each pair, 0 to 1 s.
    pub operation_s: Cost,
}

impl Default for EpParameters {
    fn default() -> Self {
        Self { pairs_log2: Whole::fixed(24), operation_s: FLOATING }
    }
}

/// IS: rankings of integer keys by counting. In each, all hosts send all others their share of the counts and get the
/// ranks back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IsParameters {
    /// Keys, as a power of two.
    pub keys_log2: Whole<1, 40>,
    /// Values that a key may have, a counter of 4 bytes each, as a power of two.
    pub range_log2: Whole<1, 28>,
    /// Number of rankings to run.
    pub rankings: Whole<1, 100_000>,
    /// Time of a key in a ranking, 0 to 1 s.
    pub operation_s: Cost,
}

impl Default for IsParameters {
    fn default() -> Self {
        Self {
            keys_log2: Whole::fixed(21),
            range_log2: Whole::fixed(10),
            rankings: Whole::fixed(10),
            operation_s: Cost::fixed(3e-7),
        }
    }
}

/// The parameters of one of the four kernels.
#[derive(Clone, Debug, PartialEq)]
pub enum NasParameters {
    Mg(MgParameters),
    Ft(FtParameters),
    Ep(EpParameters),
    Is(IsParameters),
}

impl NasParameters {
    /// The names of the programs, in the order of the documentation.
    pub const NAMES: [&'static str; 4] = ["mg", "ft", "ep", "is"];

    /// Parses the parameters of a program and fills in defaults; errors name fields from `parameters` on.
    ///
    /// # Errors
    /// The first field that is unknown or out of range, or a program that is not in [`NasParameters::NAMES`].
    ///
    /// # Examples
    /// ```
    /// use crosswind_schema::experiment::parameters::{FtParameters, NasParameters};
    ///
    /// let read = NasParameters::read("ft", &serde_json::Map::new());
    /// assert_eq!(read, Ok(NasParameters::Ft(FtParameters::default())));
    /// ```
    pub fn read(program: &str, parameters: &Map<String, Value>) -> Result<Self, DescriptionError> {
        match program {
            "mg" => fields(parameters).map(Self::Mg),
            "ft" => fields(parameters).map(Self::Ft),
            "ep" => fields(parameters).map(Self::Ep),
            "is" => fields(parameters).map(Self::Is),
            other => {
                let problem = format!("is {other:?}; it must be one of {}", Self::NAMES.join(", "));
                Err(Problem::Value(problem).at("program".into()))
            }
        }
    }
}

fn fields<T: DeserializeOwned>(parameters: &Map<String, Value>) -> Result<T, DescriptionError> {
    read::value(&Value::Object(parameters.clone())).map_err(|error| error.below("parameters"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(program: &str, parameters: &str) -> Result<NasParameters, String> {
        let parameters = serde_json::from_str(parameters).expect("a table");
        NasParameters::read(program, &parameters).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_given_means_the_kernels_of_the_paper() {
        assert_eq!(read("mg", "{}"), Ok(NasParameters::Mg(MgParameters::default())));
        assert_eq!(read("ft", "{}"), Ok(NasParameters::Ft(FtParameters::default())));
        assert_eq!(read("ep", "{}"), Ok(NasParameters::Ep(EpParameters::default())));
        assert_eq!(read("is", "{}"), Ok(NasParameters::Is(IsParameters::default())));
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_field_and_range() {
        for (program, parameters, told) in [
            ("mg", r#"{"side_log2": 1}"#, "parameters.side_log2 is 1; it must be a whole number from 2 to 12"),
            ("ft", r#"{"iterations": 0}"#, "parameters.iterations is 0; it must be a whole number from 1 to 100000"),
            ("ep", r#"{"pairs": 3}"#, "parameters.pairs is no field"),
            ("is", r#"{"operation_s": -1}"#, "parameters.operation_s is -1 s; it must be from 0 to 1 s"),
            ("lu", "{}", "program is \"lu\"; it must be one of mg, ft, ep, is"),
        ] {
            let found = read(program, parameters).expect_err(told);
            assert!(found.contains(told), "{found}");
        }
    }
}
