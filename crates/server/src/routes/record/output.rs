//! Agent output of an iteration, by piece.

use crate::auth::Caller;
use crate::http::extract::{Answer, QueryParams};
use crate::http::problem::Problem;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use ralph_loop_app::trust::repo_file;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

/// Default and maximum bytes per piece.
const BYTES: (u64, u64) = (256 * 1024, 2 * 1024 * 1024);

/// Which piece.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OutputQuery {
    /// First byte; a negative offset counts from the end.
    offset: i64,
    /// Maximum bytes.
    limit: Option<u64>,
}

/// A piece of output.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Output {
    /// The text; invalid UTF-8 is replaced.
    text: String,
    /// The first byte.
    offset: u64,
    /// The byte after the last one.
    next: u64,
    /// Total bytes.
    size: u64,
}

pub(crate) async fn output(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path((run, iteration)): Path<(String, u32)>,
    QueryParams(query): QueryParams<OutputQuery>,
) -> Answer<Json<Output>> {
    let entry = server.entry(&run)?;
    let path = entry.run_dir().iteration(iteration).join("output.log");
    let piece = server
        .blocking(move || {
            let mut file = match repo_file::open_record(&path) {
                Ok(file) => file,
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    return Ok(Output { text: String::new(), offset: 0, next: 0, size: 0 });
                }
                Err(e) => return Err(Problem::internal(format!("can't read the output: {e}"))),
            };
            let failed = |e: std::io::Error| Problem::internal(format!("can't read the output: {e}"));
            let size = file.metadata().map_err(failed)?.len();
            let offset = match u64::try_from(query.offset) {
                Ok(offset) => offset.min(size),
                Err(_) => size.saturating_sub(query.offset.unsigned_abs()),
            };
            let limit = query.limit.unwrap_or(BYTES.0).clamp(1, BYTES.1);
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(offset)).map_err(failed)?;
            file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
            // A cut character starts the next piece.
            if let Err(error) = std::str::from_utf8(&bytes)
                && error.error_len().is_none()
                && error.valid_up_to() > 0
            {
                bytes.truncate(error.valid_up_to());
            }
            let next = offset + bytes.len() as u64;
            Ok(Output { text: String::from_utf8_lossy(&bytes).into_owned(), offset, next, size })
        })
        .await?;
    Ok(Json(piece))
}
