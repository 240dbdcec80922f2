//! What can be wrong with the settings of a run.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A setting is out of its range.
    #[error("{field} is {value}; it must be {permitted}")]
    Value {
        /// Name of the setting.
        field: String,
        value: String,
        permitted: String,
    },
    /// The run cannot be set up as described.
    #[error("the work cannot be set up: {0}")]
    Setup(String),
}
