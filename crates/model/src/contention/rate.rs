//! Messages per second that a link carries (gamma of communication-interactions).

use crate::error::{ModelError, at_least_zero};
use crate::law::Formula;

/// Bits per second of a "megabit" in the paper's example: `2480 * 8 * 8192 / 155`.
const PRINTED_MEGA: f64 = 1_048_576.0;

/// Returns the messages per second of a link, `gamma = B / kappa`.
///
/// As printed (`Literal`), a megabit has 2^20 bits (E4-4). Headers and cells are not included: of 19.375 MB/s of ATM
/// over SONET, 16.954 carry data (149.76 / 155 of the line for the payload, 48 / 53 for the cells). This gives 2070
/// messages/s of 8 KiB; 2000 were measured.
///
/// `link_mb_per_s` (B) and `message_bytes` (kappa) must be above 0.
///
/// # Errors
/// An argument is out of range.
///
/// # Examples
/// ```
/// use crosswind_model::contention::message_rate;
/// use crosswind_model::law::Formula;
/// assert_eq!(message_rate(19.375, 8192.0, Formula::Literal)?, 2480.0);
/// assert!((message_rate(19.375, 8192.0, Formula::Corrected)? - 2365.1).abs() < 0.1);
/// assert!((message_rate(19.375 * 149.76 / 155.0 * 48.0 / 53.0, 8192.0, Formula::Corrected)? - 2069.6).abs() < 0.1);
/// # Ok::<(), crosswind_model::ModelError>(())
/// ```
pub fn message_rate(link_mb_per_s: f64, message_bytes: f64, formula: Formula) -> Result<f64, ModelError> {
    let link = at_least_zero(|| "link_mb_per_s".into(), link_mb_per_s, "MB/s", true)?;
    let bytes = at_least_zero(|| "message_bytes".into(), message_bytes, "bytes", true)?;
    let mega = match formula {
        Formula::Corrected => 1e6,
        Formula::Literal => PRINTED_MEGA,
    };
    Ok(link * mega / bytes)
}
