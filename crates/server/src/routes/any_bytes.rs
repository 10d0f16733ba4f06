//! Fuzzing entry point: parses any bytes as the parts of requests.

use super::create::CreateRun;
use super::prepare::LintBody;
use crate::index::ListQuery;
use crate::routes::record::shown_path::shown_path;
use crate::routes::steer::control::ControlBody;
use std::path::Component;

/// Parses any bytes as a workspace path, a list query and request bodies. Returns a score of what was
/// understood, and whether an accepted path stays in its workspace.
#[doc(hidden)]
pub fn read_anything(bytes: &[u8]) -> (usize, bool) {
    let text = String::from_utf8_lossy(bytes);
    let path = shown_path(&text);
    let stays = path.as_ref().map_or(true, |path| {
        let mut parts = path.components();
        !path.as_os_str().is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
    });
    let created = serde_json::from_slice::<CreateRun>(bytes).map_or(0, |body| 1 + body.read_whole());
    let controlled = serde_json::from_slice::<ControlBody>(bytes).map_or(0, |body| 1 + body.read_whole());
    let listed = serde_json::from_slice::<ListQuery>(bytes).map_or(0, |query| 1 + query.read_whole(&text));
    let linted = usize::from(serde_json::from_slice::<LintBody>(bytes).is_ok());
    (usize::from(path.is_ok()) + 8 * created + 64 * controlled + 512 * listed + 4096 * linted, stays)
}
