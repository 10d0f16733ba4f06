//! One line of a journal.

use super::EventBody;
use crate::id::Seq;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// Position in the journal.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub seq: Seq,
    /// When, to the millisecond.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub body: EventBody,
}
