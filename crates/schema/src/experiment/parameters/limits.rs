//! Numbers with a lower and an upper limit, for the parameters of programs.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// A whole number from `LOW` to `HIGH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Whole<const LOW: u64, const HIGH: u64>(u64);

impl<const LOW: u64, const HIGH: u64> Whole<LOW, HIGH> {
    /// Checks and wraps a number.
    ///
    /// # Errors
    /// When it is out of range, with the permitted range.
    pub fn new(value: u64) -> Result<Self, String> {
        if (LOW..=HIGH).contains(&value) { Ok(Self(value)) } else { Err(Self::refusal(&value.to_string())) }
    }

    /// Wraps a number from the code; a constant out of range does not compile.
    #[must_use]
    pub const fn fixed(value: u64) -> Self {
        assert!(LOW <= value && value <= HIGH);
        Self(value)
    }

    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    fn refusal(value: &str) -> String {
        format!("is {value}; it must be a whole number from {LOW} to {HIGH}")
    }
}

impl<'de, const LOW: u64, const HIGH: u64> Deserialize<'de> for Whole<LOW, HIGH> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Parsed as a float, so that -1, 1.5 and 1e30 are refused with the range, and 1e3 from a sweep is accepted.
        let value = f64::deserialize(deserializer)?;
        if value.fract() == 0.0 && (LOW as f64..=HIGH as f64).contains(&value) {
            return Ok(Self(value as u64));
        }
        Err(D::Error::custom(Self::refusal(&value.to_string())))
    }
}

impl<const LOW: u64, const HIGH: u64> JsonSchema for Whole<LOW, HIGH> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Whole".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": LOW, "maximum": HIGH })
    }
}

/// A fraction, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Part(f64);

/// Time of one elementary operation of a node, from 0 to 1 s.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Cost(f64);

macro_rules! zero_to_one {
    ($name:ident, $unit:literal) => {
        impl $name {
            /// Checks and wraps a number.
            ///
            /// # Errors
            /// When it is out of range, with the permitted range.
            pub fn new(value: f64) -> Result<Self, String> {
                if (0.0..=1.0).contains(&value) {
                    return Ok(Self(value));
                }
                Err(format!(concat!("is {}", $unit, "; it must be from 0 to 1", $unit), value))
            }

            /// Wraps a number from the code.
            #[must_use]
            pub const fn fixed(value: f64) -> Self {
                assert!(0.0 <= value && value <= 1.0);
                Self(value)
            }

            #[must_use]
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(f64::deserialize(deserializer)?).map_err(D::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "number", "minimum": 0.0, "maximum": 1.0 })
            }
        }
    };
}

zero_to_one!(Part, "");
zero_to_one!(Cost, " s");

impl Cost {
    /// Returns the time of `operations` operations, rounded to ns.
    #[must_use]
    pub fn ns(self, operations: u64) -> u64 {
        (operations as f64 * self.0 * 1e9).round() as u64
    }
}
