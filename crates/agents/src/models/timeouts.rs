//! Time limits of a try, and what connection failures mean.

use super::failure::Failure;
use super::provider::Route;
use ralph_loop_domain::model::ModelErrorKind;
use ralph_loop_http::TransportError;
use ralph_loop_task::config::Profile;
use std::time::Duration;

/// Default timeouts.
const CONNECT: u64 = 10;
const FIRST_BYTE: u64 = 120;
const STALL: u64 = 60;
/// No try lasts longer, however steadily bytes arrive.
pub(crate) const WHOLE: Duration = Duration::from_secs(30 * 60);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    pub connect: Duration,
    pub first_byte: Duration,
    pub stall: Duration,
}

impl Timeouts {
    pub fn of(profile: &Profile) -> Self {
        let said = profile.timeouts.unwrap_or_default();
        let secs = |said: Option<u64>, usual| Duration::from_secs(said.unwrap_or(usual).clamp(1, 3600));
        Self {
            connect: secs(said.connect, CONNECT),
            first_byte: secs(said.first_byte, FIRST_BYTE),
            stall: secs(said.stall, STALL),
        }
    }
}

pub(crate) fn connection_failure(error: &TransportError, route: &Route, timeouts: Timeouts) -> Failure {
    let cause = error.to_string();
    match error {
        TransportError::Tls(_) => Failure::of(ModelErrorKind::NotFound, format!("cannot be asked: {cause}"))
            .hint("install the machine's certificates (`ca-certificates`)"),
        TransportError::ConnectTimedOut { .. } => Failure::passing(
            ModelErrorKind::TimedOut,
            format!("did not take the connection within {} s", timeouts.connect.as_secs()),
        )
        .hint("check the network and `base_url`; `timeouts: {connect: …}` gives it longer"),
        _ if cause.contains("certificate") => {
            Failure::of(ModelErrorKind::NotFound, format!("is not trusted: {cause}"))
                .hint("the server's certificate is not known to this machine: check `base_url`, or install its authority")
        }
        TransportError::Connect { .. } => {
            let hint = if route.is_loopback() {
                format!("start the server at {}, or fix `base_url`", route.server())
            } else {
                "check the network and `base_url`".to_owned()
            };
            Failure::passing(ModelErrorKind::Unreachable, format!("cannot be reached: {cause}")).hint(hint)
        }
        TransportError::Broken { .. } | TransportError::TooLong => {
            Failure::passing(ModelErrorKind::Overloaded, format!("broke the connection: {cause}"))
        }
    }
}
