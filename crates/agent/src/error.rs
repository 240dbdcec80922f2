//! Errors in the settings of a run.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A setting is out of range.
    #[error("{field} is {value}; it must be {permitted}")]
    Value { field: String, value: String, permitted: String },
    #[error("the work cannot be set up: {0}")]
    Setup(String),
}
