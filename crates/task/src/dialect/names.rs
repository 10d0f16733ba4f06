//! Names from a task or its title: slugs, ids and branches.

use ralph_loop_protocol::id::Digest;

const MAX_SLUG: usize = 40;

/// A title as part of a branch name: lower-case letters, digits and single dashes.
pub fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_alphanumeric() && out.len() < MAX_SLUG {
            // Keeps letters beyond ASCII: git accepts them, and a title in Greek must not become empty.
            out.extend(c.to_lowercase().filter(|c| c.is_alphanumeric()));
        } else if out.len() >= MAX_SLUG {
            break;
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    let slug = out.trim_end_matches('-');
    if slug.is_empty() { "task".into() } else { slug.to_owned() }
}

/// A stable id for a task without one.
pub fn derived_id(title: &str) -> String {
    let digest = Digest::of(title.as_bytes());
    format!("task-{}", digest.as_str().get(..6).unwrap_or_default())
}

/// Whether a task's id is valid in paths and branch names.
pub fn is_usable_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 64
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && !id.starts_with(['.', '-'])
        && !id.ends_with('.')
        && !id.ends_with(".lock")
        && !id.contains("..")
}

/// The branch of a run: `ralph/<task_id>/<slug>`.
pub fn branch(task_id: &str, slug: &str) -> String {
    format!("ralph/{task_id}/{slug}")
}

/// Why git would refuse a branch of this name.
pub fn branch_problem(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("it is empty");
    }
    if name.len() > 200 {
        return Some("it is longer than 200 bytes");
    }
    if name.starts_with('-') {
        return Some("it starts with `-`");
    }
    // A branch of that name would be ambiguous.
    if name == "refs" || name.starts_with("refs/") {
        return Some("it starts with `refs/`; name the branch alone");
    }
    if name.chars().any(|c| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c)) {
        return Some("it has a space, a control character or one of ~ ^ : ? * [ \\");
    }
    if name.contains("..") || name.contains("@{") || name.contains("//") {
        return Some("it has `..`, `@{` or `//`");
    }
    let bad_part = |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with(".lock");
    if name.ends_with('.') || name == "@" || name == "HEAD" || name.split('/').any(bad_part) {
        return Some("a part of it is empty, starts with `.`, or ends with `.` or `.lock`");
    }
    None
}

/// Why a task's path isn't below the workspace.
pub fn path_problem(path: &str) -> Option<&'static str> {
    if path.trim().is_empty() {
        return Some("it is empty");
    }
    if path.starts_with(['/', '~', '\\']) || path.get(1..2) == Some(":") {
        return Some("it is not relative to the workspace");
    }
    if path.split(['/', '\\']).any(|part| part == "..") {
        return Some("it leads out of the workspace");
    }
    path.contains('\0').then_some("it has a NUL byte")
}

/// Why a repository can't be cloned from this URL. Never repeats the URL: it may hold a secret.
pub fn url_problem(url: &str) -> Option<&'static str> {
    if url.starts_with('-') {
        return Some("git would read it as an option");
    }
    if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Some("it has a blank or a control character");
    }
    let scheme = url.split_once("::").map(|(scheme, _)| scheme);
    if scheme.is_some_and(|scheme| scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')) {
        return Some("it names a helper program of git");
    }
    let authority = url.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or(rest));
    let user = authority.and_then(|authority| authority.rsplit_once('@')).map(|(user, _)| user);
    user.is_some_and(|user| user.contains(':'))
        .then_some("it holds a password; give it in the environment instead, for example as GITHUB_TOKEN")
}

pub(crate) fn non_blank(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

pub fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_short_plain_and_never_empty() {
        assert_eq!(slug("Implement Foo (task-001)!"), "implement-foo-task-001");
        assert_eq!(slug("Ελληνικά & ümlaut"), "ελληνικά-ümlaut");
        assert_eq!(slug("  ---  "), "task");
        assert!(slug(&"word ".repeat(100)).len() <= MAX_SLUG + 4);
        assert!(branch_problem(&branch("t", &slug("İstanbul ﬀ"))).is_none());
    }

    #[test]
    fn branches_that_git_refuses_are_refused_here() {
        for bad in
            ["", "a b", "a..b", "/a", "a/", "a//b", "-x", "x.lock", "a/.b", "@", "a@{b", "a~1", "a:b", "x."]
        {
            assert!(branch_problem(bad).is_some(), "{bad}");
        }
        for good in ["ralph/task-1/x", "feature/ralph-é", "main"] {
            assert_eq!(branch_problem(good), None, "{good}");
        }
    }

    #[test]
    fn addresses_that_run_programs_or_hold_secrets_are_refused() {
        for bad in ["--upload-pack=x", "ext::sh -c x", "ext::x", "a b", "https://me:secret@host/x.git"] {
            assert!(url_problem(bad).is_some(), "{bad}");
        }
        for good in [
            "https://host/x.git",
            "git@host:org/x.git",
            "ssh://git@host/x",
            "../x",
            "file:///x",
            "https://me@h/x",
        ] {
            assert_eq!(url_problem(good), None, "{good}");
        }
    }

    #[test]
    fn paths_stay_below_the_workspace() {
        for bad in ["", "/etc/passwd", "../x", "a/../../b", "~/x", "C:\\x", "a\0b"] {
            assert!(path_problem(bad).is_some(), "{bad:?}");
        }
        assert_eq!(path_problem("packages/api"), None);
        assert_eq!(path_problem("é"), None);
    }
}
