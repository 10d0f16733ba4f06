//! Guarded paths: those of `rules.toml`, the project and the home as a whole, and the guard's own files.

use super::category::Category;
use super::rules::Rules;
use super::text::{fill, has_gap, matches};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// What a path is guarded against; each level includes the ones after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guards {
    Reading,
    /// Being passed to a program that may change it.
    Naming,
    Writing,
    Removing,
}

pub type PathClass = (Category, &'static str);

#[derive(Debug, Clone, Default)]
pub struct PathRules {
    pub home: String,
    pub project: String,
    pub cwd: String,
    /// The guard's own files and folders: the binary, its state and its settings.
    pub own: Vec<String>,
}

impl PathRules {
    /// Makes a command's path absolute, without `.` and `..`. Wildcards and gaps stay.
    pub fn resolve(&self, cwd: &str, text: &str) -> String {
        let whole = match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{}{rest}", self.home),
            _ if text.starts_with('/') || has_gap(text) && fill(text, "\0").starts_with('\0') => {
                text.to_owned()
            }
            _ => format!("{cwd}/{text}"),
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in whole.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        // Another name for the same files.
        if let ["proc", _, "root", ..] = parts.as_slice() {
            parts.drain(..3);
        }
        match whole.starts_with('/') {
            true => format!("/{}", parts.join("/")),
            false => parts.join("/"),
        }
    }

    /// Why an access to a path, or to its link target, is refused.
    pub fn judge(&self, path: &str, access: Guards) -> Option<PathClass> {
        if !path.starts_with('/') {
            return None;
        }
        let path = fill(path, "*");
        self.judge_name(&path, access).or_else(|| {
            // A folder of the project may be elsewhere on the machine.
            self.judge_name(&self.link_target(&path)?, access.min(Guards::Naming))
        })
    }

    fn judge_name(&self, path: &str, access: Guards) -> Option<PathClass> {
        let rules = Rules::load()?;
        let own = |own: &String| path == own || is_below(path, own);
        if access >= Guards::Naming && self.own.iter().any(own) {
            return Some((Category::Guard, "The guard depends on it."));
        }
        if access == Guards::Removing && self.is_whole(path) {
            return self.judge_removal(path);
        }
        // Most paths are plain files of the project: no rule covers one without a hidden component.
        let plain = path.strip_prefix(&self.project).is_some_and(|rest| {
            rest.starts_with('/') && !rest.contains("/.") && !rest.contains(['*', '?', '['])
        });
        if plain && !self.project.is_empty() {
            return None;
        }
        let names = Names::new(self, path);
        let found = rules.path.iter().find(|rule| {
            rule.guards <= access
                && rule.paths.iter().any(|pattern| names.fit(pattern, true))
                && !rule.except.iter().any(|pattern| names.fit(pattern, false))
        });
        let removal = || (access == Guards::Removing).then(|| self.judge_removal(path)).flatten();
        found.map(|rule| (rule.category, rule.why.as_str())).or_else(removal)
    }

    /// Why a path may not be removed with all its content.
    fn judge_removal(&self, path: &str) -> Option<PathClass> {
        let rules = Rules::load()?;
        let files = |why| Some((Category::Files, why));
        if covers(path, &self.project) {
            return files("It would delete the whole project.");
        }
        if covers(path, &self.home) {
            return files("It would delete the home folder.");
        }
        if path.starts_with(&format!("{}/", self.project)) && path.ends_with("/.git") {
            return files("It contains the repository's history.");
        }
        let rest = path.strip_prefix(&self.home)?.strip_prefix('/')?;
        let is_top = !rest.contains('/') && !is_below(path, &self.project) && path != self.project;
        let returns = rules.secrets.caches.iter().any(|cache| cache == rest);
        if is_top && !returns { files("It is a whole folder of the user's home.") } else { None }
    }

    /// Whether a path is the project, the home, or a folder around them.
    pub fn is_whole(&self, path: &str) -> bool {
        covers(path, &self.project) || covers(path, &self.home)
    }

    /// Whether a path is neither in the project nor in a folder for temporary files.
    pub fn is_foreign(&self, path: &str) -> bool {
        path.starts_with('/')
            && ![&self.project, "/tmp", "/dev"].iter().any(|top| is_below(path, top) || path == *top)
    }

    /// Whether a file must not leave this machine.
    pub fn holds_secrets(&self, path: &str) -> bool {
        let Some(rules) = Rules::load() else { return true };
        let secrets = &rules.secrets;
        let names = Names::new(self, path);
        let listed = |list: &[String]| list.iter().any(|pattern| names.fit(pattern, true));
        let login = self.judge(path, Guards::Reading).is_some();
        login || listed(&secrets.paths) && !listed(&secrets.except)
    }

    /// The file that a path's links lead to, named below the project or the home; `None` without links.
    fn link_target(&self, path: &str) -> Option<String> {
        let file = Path::new(path);
        let in_folder = || Some(file.parent()?.canonicalize().ok()?.join(file.file_name()?));
        let real: PathBuf = file.canonicalize().ok().or_else(in_folder)?;
        let mut named = real.clone();
        // A home or a project may have two names.
        for folder in [&self.project, &self.home].into_iter().filter(|folder| !folder.is_empty()) {
            let Ok(top) = Path::new(folder).canonicalize() else { continue };
            if let Ok(rest) = real.strip_prefix(top) {
                named = Path::new(folder).join(rest);
                break;
            }
        }
        let named = named.to_str()?.trim_end_matches('/').to_owned();
        (named != path).then_some(named)
    }
}

fn is_below(path: &str, folder: &str) -> bool {
    !folder.is_empty() && path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether removing a path also removes this folder.
fn covers(path: &str, folder: &str) -> bool {
    let mut around = Path::new(folder).ancestors().filter_map(Path::to_str);
    !folder.is_empty() && around.any(|around| fits_parts(&split(around), &split(path), fits_part))
}

fn split(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty()).collect()
}

/// A path for the patterns of `rules.toml`: from the root, from a home (`~`), and from the project (`@`).
struct Names<'a> {
    parts: Vec<&'a str>,
    /// How many components the user's home, root's, the project and the first folder have, if the path is in them.
    homes: Vec<usize>,
    projects: Vec<usize>,
}

impl<'a> Names<'a> {
    fn new(paths: &PathRules, path: &'a str) -> Self {
        let parts = split(path);
        let below = |tops: &[&str]| {
            let tops =
                tops.iter().map(|top| split(top)).filter(|top| !top.is_empty() && top.len() <= parts.len());
            let fits =
                |top: &Vec<&str>| top.iter().zip(&parts).all(|(part, of_path)| fits_part(part, of_path));
            tops.filter(fits).map(|top| top.len()).collect::<Vec<_>>()
        };
        let (homes, projects) = (below(&[&paths.home, "/root"]), below(&[&paths.project, &paths.cwd]));
        Self { parts, homes, projects }
    }

    /// Whether the path matches a pattern; `loose` also if only its own wildcards might. Root's home isn't an
    /// exception.
    fn fit(&self, pattern: &str, loose: bool) -> bool {
        let part = if loose { fits_part } else { matches };
        let fits = |pattern: &str, parts: &[&str]| {
            let first = pattern.split('/').find(|part| !part.is_empty()).unwrap_or_default();
            let differs = |found: &&str| first != "**" && !part(first, found);
            !parts.first().is_some_and(differs) && fits_parts(&split(pattern), parts, part)
        };
        match (pattern.strip_prefix('~'), pattern.strip_prefix('@')) {
            (Some(rest), _) => {
                let homes = self
                    .homes
                    .iter()
                    .filter(|top| loose || self.parts.first() != Some(&"root") || **top != 1);
                homes.into_iter().any(|top| fits(rest, &self.parts[*top..]))
            }
            (_, Some(rest)) => self.projects.iter().any(|top| fits(rest, &self.parts[*top..])),
            _ => fits(pattern, &self.parts),
        }
    }
}

/// Whether path components match a pattern's. `**` is any number of folders, including none.
fn fits_parts(pattern: &[&str], path: &[&str], part_fits: fn(&str, &str) -> bool) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (["**"], _) => true,
        (["**", rest @ ..], _) => (0..=path.len()).any(|skip| fits_parts(rest, &path[skip..], part_fits)),
        ([first, rest @ ..], [part, parts @ ..]) => {
            part_fits(first, part) && fits_parts(rest, parts, part_fits)
        }
        _ => false,
    }
}

/// Both sides may have wildcards; a shell's `*` skips hidden files.
fn fits_part(pattern: &str, part: &str) -> bool {
    if matches(pattern, part) || !part.contains(['*', '?', '[']) {
        return matches(pattern, part);
    }
    let mut class = false;
    let loose: String = part
        .chars()
        .filter_map(|c| match c {
            '[' => {
                class = true;
                Some('?')
            }
            ']' => {
                class = false;
                None
            }
            c => (!class).then_some(c),
        })
        .collect();
    (loose.starts_with('.') || !pattern.starts_with('.')) && matches(&loose, pattern.trim_end_matches('*'))
}
