//! The steps, one file each: perform the effect, journal it.

pub(crate) mod checkpoint;
pub(crate) mod checks;
pub(crate) mod consult;
pub(crate) mod evidence;
mod go_back;
mod hand_back;
pub(crate) mod judge;
pub(crate) mod mitigate;
pub(crate) mod prepare;
pub mod prove_commit;
pub(crate) mod recorder;
pub(crate) mod stuck_signs;
pub(crate) mod tick;
pub(crate) mod wait;
pub(crate) mod work;
