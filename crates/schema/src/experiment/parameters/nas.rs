//! Parameters of the communication skeletons of NAS kernels (communication-interactions, section 4; docs/concepts/programs.md).
//!
//! Sizes are given as powers of two, as the kernels need them. `operation_s` is what one
//! operation takes on a workstation of the time.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Cost, Whole};
use crate::error::{DescriptionError, Problem};
use crate::read;

/// To how many others each host of MG sends in an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Partners {
    /// Three at most, whatever the number of hosts: so the paper's counts of messages say.
    #[default]
    Three,
    /// All of them: so the paper's text says; on more than four hosts that sends more than it counted.
    All,
}

/// MG: multigrid on a cube, in V-cycles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MgParameters {
    /// Points of the cube along each side, as a power of two.
    pub side_log2: Whole<2, 12>,
    /// V-cycles.
    pub cycles: Whole<1, 100_000>,
    /// To how many others each host sends in an exchange.
    pub partners: Partners,
    /// Seconds of a floating-point operation, 58 for each point and cycle, 0 to 1 s.
    pub operation_s: Cost,
}

/// A floating-point operation of an UltraSparc of 1996, about: 33 Mflop/s.
const FLOATING: Cost = Cost::fixed(3e-8);

impl Default for MgParameters {
    fn default() -> Self {
        Self { side_log2: Whole::fixed(7), cycles: Whole::fixed(4), partners: Partners::Three, operation_s: FLOATING }
    }
}

/// FT: fast Fourier transforms of a cube of complex numbers; each is two phases of computing, with a transposition after each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FtParameters {
    /// Points of the cube, 16 bytes each, as a power of two.
    pub points_log2: Whole<1, 28>,
    /// Inverse transforms, each with a checksum at its end; one forward transform comes before them.
    pub iterations: Whole<1, 100_000>,
    /// Seconds of a floating-point operation, 5 n log2 n for a transform of n points, 0 to 1 s.
    pub operation_s: Cost,
}

impl Default for FtParameters {
    fn default() -> Self {
        Self { points_log2: Whole::fixed(21), iterations: Whole::fixed(6), operation_s: FLOATING }
    }
}

/// EP: pairs of random numbers, each host its own; at the end all send 44 bytes to one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EpParameters {
    /// Pairs, as a power of two.
    pub pairs_log2: Whole<1, 40>,
    /// Seconds of a floating-point operation, 100 for each pair, 0 to 1 s.
    pub operation_s: Cost,
}

impl Default for EpParameters {
    fn default() -> Self {
        Self { pairs_log2: Whole::fixed(24), operation_s: FLOATING }
    }
}

/// IS: rankings of integer keys by counting: in each all hosts send all others their share of the counts, and get back the ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct IsParameters {
    /// Keys, as a power of two.
    pub keys_log2: Whole<1, 40>,
    /// Values that a key may have, a counter of 4 bytes each, as a power of two.
    pub range_log2: Whole<1, 28>,
    /// Rankings.
    pub rankings: Whole<1, 100_000>,
    /// Seconds of a key in a ranking, 0 to 1 s.
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

/// The parameters of one of the four.
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

    /// Those of a program, defaults filled in; fields are named from `parameters` on.
    ///
    /// # Errors
    /// The first field that is unknown or out of range; a program that is none of [`NasParameters::NAMES`].
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
