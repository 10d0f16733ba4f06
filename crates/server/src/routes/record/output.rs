//! Agent output of an iteration, by piece, and a search over all of it.

use crate::auth::Caller;
use crate::http::extract::{Answer, QueryParams};
use crate::http::problem::Problem;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use ralph_loop_app::trust::repo_file;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::Path as FilePath;
use std::sync::Arc;

/// Default and maximum bytes per piece.
const BYTES: (u64, u64) = (256 * 1024, 2 * 1024 * 1024);

/// Bytes of a line that are searched and returned at a time, of all returned lines, and of the log per request.
const LINE_MAX: u64 = 64 * 1024;
const FOUND_MAX: usize = 512 * 1024;
const SEARCHED_MAX: u64 = 64 * 1024 * 1024;
/// Limits for the searched words and for the lines of an answer.
const WORDS_MAX: usize = 200;
const HITS_MAX: usize = 500;

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
            let Some((mut file, size)) = open(&path)? else {
                return Ok(Output { text: String::new(), offset: 0, next: 0, size: 0 });
            };
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

/// The output and its size; `None` if nothing was printed.
fn open(path: &FilePath) -> Result<Option<(File, u64)>, Problem> {
    let file = match repo_file::open_record(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(e)),
    };
    let size = file.metadata().map_err(failed)?.len();
    Ok(Some((file, size)))
}

fn failed(e: std::io::Error) -> Problem {
    Problem::internal(format!("can't read the output: {e}"))
}

/// What to find.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SearchQuery {
    /// The words, in any case.
    q: String,
    /// The first byte to search; `next` of the answer before.
    offset: u64,
}

/// Lines with the words.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct OutputHits {
    /// In order.
    hits: Vec<OutputHit>,
    /// Where the next search begins; `size` at the end.
    next: u64,
    /// Total bytes.
    size: u64,
}

/// One line.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct OutputHit {
    /// Its first byte.
    offset: u64,
    /// The line as the agent printed it.
    line: String,
}

pub(crate) async fn search(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path((run, iteration)): Path<(String, u32)>,
    QueryParams(query): QueryParams<SearchQuery>,
) -> Answer<Json<OutputHits>> {
    let words = query.q.trim().to_lowercase();
    if words.is_empty() || words.len() > WORDS_MAX {
        return Err(Problem::bad(format!("`q` is empty or longer than {WORDS_MAX} bytes")));
    }
    let entry = server.entry(&run)?;
    let path = entry.run_dir().iteration(iteration).join("output.log");
    let found = server
        .blocking(move || {
            let Some((mut file, size)) = open(&path)? else { return Ok(OutputHits::default()) };
            let from = query.offset.min(size);
            file.seek(SeekFrom::Start(from)).map_err(failed)?;
            find(BufReader::new(file.take(size - from)), from, size, &words).map_err(failed)
        })
        .await?;
    Ok(Json(found))
}

/// Lines with the words, until the log ends or a limit is reached.
fn find(mut log: impl BufRead, from: u64, size: u64, words: &str) -> std::io::Result<OutputHits> {
    let (mut at, mut bytes) = (from, 0);
    let mut hits = Vec::new();
    let mut line = Vec::new();
    while hits.len() < HITS_MAX && bytes < FOUND_MAX && at - from < SEARCHED_MAX {
        line.clear();
        // The rest of a longer line is the next one.
        let read = (&mut log).take(LINE_MAX).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        if has(text.trim_end(), words) {
            bytes += read;
            hits.push(OutputHit { offset: at, line: text.trim_end().to_owned() });
        }
        at += read as u64;
    }
    Ok(OutputHits { hits, next: at, size })
}

/// Whether a line has the words: as printed, or in a text of a JSON line, which may be escaped.
fn has(line: &str, words: &str) -> bool {
    let within = |text: &str| text.to_lowercase().contains(words);
    within(line)
        || (line.starts_with('{')
            && line.contains('\\')
            && serde_json::from_str(line).is_ok_and(|value| any_text(&value, &within)))
}

fn any_text(value: &Value, within: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => within(text),
        Value::Array(all) => all.iter().any(|one| any_text(one, within)),
        Value::Object(all) => all.values().any(|one| any_text(one, within)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(log: &str, from: u64, words: &str) -> (Vec<u64>, u64) {
        let size = log.len() as u64;
        let found = find(&log.as_bytes()[from as usize..], from, size, words).unwrap();
        assert_eq!(found.size, size);
        (found.hits.iter().map(|hit| hit.offset).collect(), found.next)
    }

    #[test]
    fn lines_are_found_as_printed_and_inside_of_json() {
        let log = "first Lock\n{\"text\":\"a \\\"lock\\\" \\u00e4\"}\nlast\n";
        assert_eq!(offsets(log, 0, "lock"), (vec![0, 11], log.len() as u64));
        assert_eq!(offsets(log, 0, "\"lock\" ä"), (vec![11], log.len() as u64));
        assert_eq!(offsets(log, 11, "lock").0, [11]);
        assert_eq!(offsets(log, 0, "missing").0, [0; 0]);
    }

    #[test]
    fn a_search_continues_where_a_limit_ended_it() {
        let log = "lock\n".repeat(HITS_MAX + 3);
        let (first, next) = offsets(&log, 0, "lock");
        assert_eq!((first.len(), next), (HITS_MAX, 5 * HITS_MAX as u64));
        let (rest, end) = offsets(&log, next, "lock");
        assert_eq!((rest.len(), end), (3, log.len() as u64));
    }

    #[test]
    fn a_line_without_end_is_searched_in_parts() {
        let log = format!("{}lock", "x".repeat(3 * LINE_MAX as usize));
        assert_eq!(offsets(&log, 0, "lock"), (vec![3 * LINE_MAX], log.len() as u64));
    }
}
