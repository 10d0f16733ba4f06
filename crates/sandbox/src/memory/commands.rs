//! The commands that every memory sandbox knows.

use super::{MemoryExit, MemoryFiles};
use ralph_loop_domain::ports::ExecRequest;

pub(super) fn built_in(request: &ExecRequest, files: &MemoryFiles) -> Option<MemoryExit> {
    let words: Vec<&str> = request.argv.iter().map(String::as_str).collect();
    // A path is relative to the command's folder.
    let folder = super::files::key(&request.cwd).unwrap_or_default();
    let file = |path: &str| {
        let path = path.trim_start_matches("./");
        if folder.is_empty() { files.get(path) } else { files.get(&format!("{folder}/{path}")) }
    };
    let complain = |code: i32, path: &str| MemoryExit {
        code,
        stderr: format!("{path}: No such file or directory\n").into_bytes(),
        ..MemoryExit::default()
    };
    Some(match words.as_slice() {
        ["true", ..] => MemoryExit::code(0),
        ["false", ..] => MemoryExit::code(1),
        ["test", "-f", path] => MemoryExit::code(i32::from(file(path).is_none())),
        ["cat", path] => file(path).map_or_else(|| complain(1, path), MemoryExit::prints),
        ["grep", text, path] => match file(path) {
            None => complain(2, path),
            Some(bytes) => {
                let content = String::from_utf8_lossy(bytes);
                let hits: String = content
                    .lines()
                    .filter(|line| line.contains(text))
                    .map(|line| format!("{line}\n"))
                    .collect();
                MemoryExit { code: i32::from(hits.is_empty()), ..MemoryExit::prints(hits) }
            }
        },
        _ => return None,
    })
}
