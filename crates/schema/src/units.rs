//! Quantities with their unit and their permitted range.
//!
//! The range is defined only here: parsing, error messages and the JSON Schema all take it from the macro below. A
//! quantity is serialised as a plain number; the field's name carries the unit.

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// A quantity's unit and range, for messages and schemas.
pub trait Quantity: Copy {
    /// The unit in text, empty for a pure number.
    const UNIT: &'static str;
    const MINIMUM: f64;
    /// Whether the minimum itself is excluded.
    const EXCLUSIVE: bool;
    fn get(self) -> f64;
}

/// Formats the range for errors: "must be greater than 0 MB/s (finite)".
fn permitted<Q: Quantity>() -> String {
    let relation = if Q::EXCLUSIVE { "greater than" } else { "at least" };
    let space = if Q::UNIT.is_empty() { "" } else { " " };
    format!("must be finite and {relation} {}{space}{}", Q::MINIMUM, Q::UNIT)
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $unit:literal, $minimum:literal, exclusive: $exclusive:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
        #[serde(transparent)]
        pub struct $name(f64);

        impl $name {
            /// Checks and wraps a value.
            ///
            /// # Errors
            /// When `value` is not finite or out of range, with the permitted range.
            pub fn new(value: f64) -> Result<Self, String> {
                let above = if $exclusive { value > $minimum } else { value >= $minimum };
                if value.is_finite() && above {
                    Ok(Self(value))
                } else {
                    let space = if $unit.is_empty() { "" } else { " " };
                    Err(format!("is {value}{space}{}; it {}", $unit, permitted::<Self>()))
                }
            }

            /// Wraps a value from the code.
            #[must_use]
            pub const fn fixed(value: f64) -> Self {
                assert!(value > $minimum || (value == $minimum && !$exclusive));
                Self(value)
            }
        }

        impl Quantity for $name {
            const UNIT: &'static str = $unit;
            const MINIMUM: f64 = $minimum;
            const EXCLUSIVE: bool = $exclusive;
            fn get(self) -> f64 {
                self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(f64::deserialize(deserializer)?).map_err(D::Error::custom)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let bound = if $exclusive { "exclusiveMinimum" } else { "minimum" };
                let mut schema = schemars::json_schema!({ "type": "number", "x-unit": $unit });
                schema.insert(bound.to_owned(), $minimum.into());
                schema
            }
        }
    };
}

quantity!(/// Work units per second.
    WorkPerSecond, "1/s", 0.0, exclusive: false);
quantity!(/// Work units per second of a processor that computes at all.
    PositiveWorkPerSecond, "1/s", 0.0, exclusive: true);
quantity!(/// A transfer rate. 1 MB is 10^6 bytes.
    MegabytesPerSecond, "MB/s", 0.0, exclusive: true);
quantity!(/// An interference rate: fraction of the compute rate lost per MB/s.
    SecondsPerMegabyte, "s/MB", 0.0, exclusive: false);
quantity!(/// An amount of data. 1 MB is 10^6 bytes.
    Megabytes, "MB", 0.0, exclusive: true);
quantity!(/// Length of a message.
    Bytes, "bytes", 0.0, exclusive: true);
quantity!(/// An amount of work, in the units that the kernel counts.
    WorkUnits, "work units", 0.0, exclusive: true);
quantity!(/// An amount of data that may be nothing. 1 MB is 10^6 bytes.
    MegabytesOrNone, "MB", 0.0, exclusive: false);
quantity!(/// Seconds of a platform in one second of the clock.
    TimeScale, "", 0.0, exclusive: true);
quantity!(/// A duration.
    Seconds, "s", 0.0, exclusive: false);
quantity!(/// A duration that is not nothing.
    PositiveSeconds, "s", 0.0, exclusive: true);
quantity!(/// A ratio of two quantities of the same unit.
    Ratio, "", 0.0, exclusive: false);

macro_rules! default {
    ($($name:ident: $value:literal),*) => {
        $(impl Default for $name {
            fn default() -> Self {
                Self($value)
            }
        })*
    };
}

default!(SecondsPerMegabyte: 0.0, Ratio: 0.0, Seconds: 0.0, MegabytesOrNone: 0.0, TimeScale: 1.0);

impl WorkPerSecond {
    /// Returns the rate times a factor of at least 0.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self((self.0 * factor).clamp(0.0, f64::MAX))
    }
}

macro_rules! between {
    ($(#[$doc:meta])* $name:ident, $minimum:literal to $maximum:literal, exclusive: $exclusive:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
        #[serde(transparent)]
        pub struct $name(f64);

        impl $name {
            pub const MAXIMUM: f64 = $maximum;

            #[must_use]
            pub fn get(self) -> f64 {
                self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = f64::deserialize(deserializer)?;
                if ($minimum..=$maximum).contains(&value) && !($exclusive && value == $minimum) {
                    return Ok(Self(value));
                }
                let relation = if $exclusive { "greater than " } else { "" };
                let and = if $exclusive { "and at most" } else { "to" };
                Err(D::Error::custom(format!("is {value}; it must be {relation}{} {and} {}", $minimum, $maximum)))
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let bound = if $exclusive { "exclusiveMinimum" } else { "minimum" };
                let mut schema = schemars::json_schema!({ "type": "number" });
                schema.insert(bound.to_owned(), $minimum.into());
                schema.insert("maximum".to_owned(), $maximum.into());
                schema
            }
        }
    };
}

between!(/// Share of a processor or of a link, above 0 and at most 1.
    Share, 0.0 to 1.0, exclusive: true);
between!(/// Part of a rate that is left, which may be nothing.
    Part, 0.0 to 1.0, exclusive: false);
between!(/// Standard deviation of a logarithm, 0 to 5: a factor of 150 either way.
    Sigma, 0.0 to 5.0, exclusive: false);
between!(/// Shape of a Weibull distribution.
    WeibullShape, 0.1 to 100.0, exclusive: false);

impl Share {
    /// The whole of it.
    pub const ALL: Self = Self(1.0);
}

impl WeibullShape {
    /// That of an exponential distribution.
    pub const EXPONENTIAL: Self = Self(1.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_error_names_value_unit_and_range() {
        assert_eq!(
            MegabytesPerSecond::new(-1.0).expect_err("negative"),
            "is -1 MB/s; it must be finite and greater than 0 MB/s"
        );
        assert!(SecondsPerMegabyte::new(f64::NAN).is_err());
        assert!(WorkPerSecond::new(0.0).is_ok());
    }
}
