//! The steps, one file each: perform the effect, journal it.

pub(crate) mod checkpoint;
pub(crate) mod checks;
mod claims;
pub(crate) mod consult;
mod finish;
mod judge;
pub(crate) mod prepare;
mod promise;
pub(crate) mod prove;
mod publish;
mod recover;
pub(crate) mod stuck_signals;
pub(crate) mod verify;
mod wait;
mod work;

pub(crate) use checkpoint::checkpoint;
pub(crate) use finish::{ask, finish, suspend};
pub(crate) use judge::judge;
pub(crate) use prepare::prepare;
pub(crate) use prove::prove;
pub(crate) use publish::publish;
pub(crate) use recover::recover;
pub(crate) use verify::verify;
pub(crate) use wait::wait;
pub(crate) use work::work;
