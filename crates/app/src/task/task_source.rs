//! Finds a task file, by name or in a folder, and reads its texts.

use crate::error::AppError;
use crate::read::find;
use crate::trust::repo_file;
use ralph_loop_protocol::id::Digest;
use ralph_loop_task::dialect::{Dialect, TaskTexts, detect_text, names};
use ralph_loop_task::lint;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct TaskSource {
    /// The task format.
    pub dialect: Dialect,
    pub folder: PathBuf,
    pub files: TaskTexts,
}

impl TaskSource {
    /// Identifies its text, wherever its files are.
    pub fn digest(&self) -> Digest {
        let mut all = format!("{}\0{}\0", names::base_name(self.files.name()), self.files.text());
        for side in self.dialect.side_files() {
            if let Some((_, text)) = self.files.beside(side) {
                all.push_str(&format!("{side}\0{text}\0"));
            }
        }
        Digest::of(all.as_bytes())
    }

    /// A file's path for messages.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Whether a task file has this name. One that can't be read is reported, not skipped.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| !found.is_dir())
}

/// The formats whose main file is in `folder`.
pub fn candidates(folder: &Path) -> Vec<Dialect> {
    Dialect::ALL.into_iter().filter(|dialect| is_there(&folder.join(dialect.main_file()))).collect()
}

/// Reads the task `file`; without a name the only one in the folder or at the repo's top.
pub fn find(folder: &Path, file: Option<&Path>) -> Result<TaskSource, AppError> {
    match file {
        Some(file) => named(folder, file),
        None => {
            let top = find::top(folder);
            let here = candidates(folder);
            let (place, found) =
                if here.is_empty() { (top.as_path(), candidates(&top)) } else { (folder, here) };
            match found.as_slice() {
                [dialect] => read(place, *dialect, dialect.main_file()),
                [] => Err(none_here(place)),
                several => Err(too_many(several)),
            }
        }
    }
}

/// Reads a task of a known format.
pub fn read(folder: &Path, dialect: Dialect, name: &str) -> Result<TaskSource, AppError> {
    let text = text_of(&folder.join(name))?.ok_or_else(|| {
        let missing = lint::missing_file(dialect, name);
        AppError::usage(missing.message).hint(missing.fix)
    })?;
    with_side_files(folder, dialect, name, text)
}

fn named(folder: &Path, file: &Path) -> Result<TaskSource, AppError> {
    let shown = file.display().to_string();
    let path = folder.join(file);
    if path.is_dir() {
        // A folder means the only task in it; `ralph/` means its plan.
        let inside = if path.join("tasks.json").is_file() {
            vec![file.join("tasks.json")]
        } else {
            candidates(&path).into_iter().map(|dialect| file.join(dialect.main_file())).collect()
        };
        return match inside.as_slice() {
            [only] => named(folder, only),
            [] => Err(none_here(&path)),
            several => Err(ambiguous(several.iter().map(|p| p.display().to_string()).collect())),
        };
    }
    let base = names::base_name(&shown);
    if Dialect::Plan.side_files().contains(&base) && path.with_file_name("tasks.json").is_file() {
        let main = file.with_file_name("tasks.json");
        return Err(AppError::usage(format!("`{shown}` is a part of a plan"))
            .hint(format!("name its list of stories: `{}`", main.display())));
    }
    let text = text_of(&path)?.ok_or_else(|| {
        AppError::usage(format!("`{shown}` doesn't exist")).hint("run `ralph init --task` to write one")
    })?;
    let dialect = detect_text(&shown, &text);
    with_side_files(folder, dialect, &shown, text)
}

/// Adds the side files of a task whose main file was already read.
pub fn with_side_files(
    folder: &Path,
    dialect: Dialect,
    name: &str,
    text: String,
) -> Result<TaskSource, AppError> {
    let prefix = name.strip_suffix(names::base_name(name)).unwrap_or_default();
    let mut files = TaskTexts::new(name, text);
    for side in dialect.side_files() {
        let side = format!("{prefix}{side}");
        if let Some(text) = text_of(&folder.join(&side))? {
            files = files.with(side, text);
        }
    }
    Ok(TaskSource { dialect, folder: folder.to_owned(), files })
}

/// `None` if the file doesn't exist.
fn text_of(path: &Path) -> Result<Option<String>, AppError> {
    let failed = |e: &std::io::Error| {
        AppError::usage(format!("cannot read `{}`: {e}", path.display()))
            .hint(repo_file::remedy(e).unwrap_or("name a file that can be read"))
    };
    let bytes = match repo_file::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(&e)),
    };
    String::from_utf8(bytes).map(Some).map_err(|_| {
        AppError::usage(format!("`{}` is not UTF-8 text", path.display())).hint("save it as UTF-8")
    })
}

fn none_here(folder: &Path) -> AppError {
    let names: Vec<String> = Dialect::ALL.iter().map(|d| format!("`{}`", d.main_file())).collect();
    AppError::usage(format!("no task file in `{}`", folder.display()))
        .cause(format!("looked for {}", names.join(", ")))
        .hint("`ralph init --task` (or `--json-task`, `--plan`, `--prompt`) writes one to fill in")
}

fn too_many(several: &[Dialect]) -> AppError {
    ambiguous(several.iter().map(|d| d.main_file().to_owned()).collect())
}

fn ambiguous(names: Vec<String>) -> AppError {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    AppError::usage(format!("more than one task is here: {}", quoted.join(", ")))
        .hint("name the one that you mean")
}
