//! The proof of a run in words, for people; what it is made of is [`ralph_loop_protocol::proof`].

mod markdown;

pub use markdown::{evidence_markdown, plain};
pub use ralph_loop_protocol::proof::{
    CLEAN_CHECKOUT, Difference, DifferenceKind, HarnessChange, HarnessSource, Proof, ProofCheck, ProofLevel,
    ProtectedEvidence, ScoreFacts, Suppression, TestsQuestion, VERSION, Watching,
};
