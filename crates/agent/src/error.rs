//! What can be wrong with the settings of a run.

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A setting is out of its range.
    #[error("{field} is {value}; it must be {permitted}")]
    Value {
        /// Name of the setting.
        field: String,
        /// What was given.
        value: String,
        /// What is permitted.
        permitted: String,
    },
    /// The run cannot be set up as described.
    #[error("the work cannot be set up: {0}")]
    Setup(String),
}
