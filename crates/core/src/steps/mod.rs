//! The steps, one file each: perform the effect, journal it.

pub(crate) mod checkpoint;
pub(crate) mod checks;
mod claims;
pub(crate) mod consult;
mod finish;
mod judge;
pub(crate) mod prepare;
pub(crate) mod prove;
mod publish;
mod recover;
pub(crate) mod stuck_signals;
pub(crate) mod verify;
mod wait;
mod work;

pub(crate) use crate::handover::{publish, push};
pub(crate) use checkpoint::checkpoint;
pub(crate) use consult::{criticise, diagnose};
pub(crate) use finish::{ask, finish, suspend};
pub(crate) use judge::judge;
pub(crate) use prepare::prepare;
pub(crate) use prove::prove;
pub(crate) use publish::{look_at_checks, look_at_review, update_pr};
pub(crate) use recover::mitigate;
pub(crate) use verify::{recheck, recheck_baseline, verify};
pub(crate) use wait::wait;
pub(crate) use work::{close_interrupted, void, work};
