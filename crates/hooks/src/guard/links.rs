//! Where a path leads: a link in the project, which a repo may bring along, can have another name for a file that is nobody's to read.

use super::value::UNKNOWN;
use std::path::{Path, PathBuf};

/// The place that a path really has, as it is called below one of these folders; none where it is the one that it says.
pub fn led_to(path: &str, folders: &[&str]) -> Option<String> {
    if !path.starts_with('/') || path.contains(['*', '?', '[', UNKNOWN]) {
        return None;
    }
    let real = real(Path::new(path))?;
    // A home or a project may have two names itself.
    for folder in folders.iter().filter(|folder| !folder.is_empty()) {
        if let Ok(rest) = real.strip_prefix(Path::new(folder).canonicalize().ok()?) {
            let named = Path::new(folder).join(rest);
            let text = named.to_str()?.trim_end_matches('/');
            return (text != path).then(|| text.to_owned());
        }
    }
    let text = real.to_str()?;
    (text != path).then(|| text.to_owned())
}

/// A file that is not there yet has the place that its folder has.
fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_taken_for_what_it_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let (home, project) = (top.join("home"), top.join("home/project"));
        std::fs::create_dir_all(home.join(".ssh")).unwrap();
        std::fs::create_dir_all(&project).unwrap();
        std::os::unix::fs::symlink(home.join(".ssh"), project.join("docs")).unwrap();
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let folders = [text(project.clone()), text(home.clone())];
        let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
        let led = |path: PathBuf| led_to(&text(path), &folders);
        assert_eq!(led(project.join("docs/id_rsa")), Some(text(home.join(".ssh/id_rsa"))));
        assert_eq!(led(project.join("plain.txt")), None);
        assert_eq!(led(project.clone()), None);
        assert_eq!(led(project.join("no/such/folder")), None);
        let other = top.join("other");
        std::os::unix::fs::symlink(&home, &other).unwrap();
        let other = text(other);
        assert_eq!(led_to(&format!("{other}/project/x"), &[&other]), None, "a home with two names is itself");
    }
}
