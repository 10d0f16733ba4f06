//! Renders the proof of a run; its data is in [`ralph_loop_protocol::proof`].

mod markdown;

pub use markdown::{evidence_markdown, plain};
pub use ralph_loop_protocol::proof::{
    CLEAN_CHECKOUT, Difference, DifferenceKind, HarnessChange, HarnessSource, Proof, ProofCheck, ProofLevel,
    ProtectedEvidence, ScoreFacts, Suppression, TestsQuestion, VERSION, Watching,
};
