//! Removing, moving or overwriting what is not the project's.

use super::Call;
use crate::guard::category::{Category, Refusal};
use crate::guard::value::{Field, UNKNOWN};

const REMOVERS: &[&str] =
    &["rm", "rmdir", "unlink", "shred", "srm", "rimraf", "del", "del-cli", "trash", "wipe", "truncate"];
/// Programs that write their last argument, or all of them.
const WRITERS: &[&str] = &["cp", "mv", "ln", "install", "rsync", "tee", "touch", "dd", "sponge"];

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    let removal = |text: &str| {
        // Of a path that begins with something unknown, nothing can be said.
        if text.starts_with(UNKNOWN) {
            return None;
        }
        call.places.removal(&(call.resolve)(text)).and_then(|(category, why)| call.refuse(category, why))
    };
    let writing = |text: &str| {
        if text.starts_with(UNKNOWN) {
            return None;
        }
        call.places.writing(&(call.resolve)(text)).and_then(|(category, why)| call.refuse(category, why))
    };
    if call.option(&["--no-preserve-root"]) {
        return call.refuse(Category::Files, "It would take the whole machine with it.");
    }
    match call.name {
        "rm" | "rimraf" | "srm" if call.args.iter().any(may_be_root) => {
            call.refuse(Category::Files, "Where that variable is empty, it takes the whole machine with it; `${NAME:?}` ends there instead.")
        }
        name if REMOVERS.contains(&name) => operands(call).find_map(removal),
        "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" => {
            let recursive = call.short('R') || call.option(&["--recursive"]);
            let paths = || call.operands().skip(1).map(|arg| arg.text.as_str());
            if recursive { paths().find_map(removal) } else { paths().find_map(writing) }
        }
        "mv" => {
            let paths: Vec<&str> = operands(call).collect();
            let (last, from) = paths.split_last()?;
            from.iter().find_map(|text| removal(text)).or_else(|| writing(last))
        }
        "tee" | "touch" | "mkdir" => operands(call).find_map(writing),
        "rsync" if call.args.iter().any(|arg| arg.text.starts_with("--delete")) => {
            operands(call).last().filter(|to| !to.contains(':')).and_then(removal)
        }
        "ln" => {
            let paths: Vec<&str> = operands(call).collect();
            let (last, from) = paths.split_last()?;
            // A second name for a home, or for what is above it, leads past every rule on its files.
            let wide = |text: &&&str| call.places.holds_home(&(call.resolve)(text));
            match from.iter().find(wide) {
                Some(_) => call.refuse(Category::Files, "It gives the whole home folder another name."),
                None => writing(last),
            }
        }
        name if WRITERS.contains(&name) && name != "dd" => operands(call).last().and_then(writing),
        "sed" | "gsed" | "perl" if call.short('i') || call.option(&["--in-place"]) => {
            operands(call).skip(1).find_map(writing)
        }
        "find"
            if call
                .value(&["-fprint", "-fprintf", "-fls", "-fprint0"])
                .is_some_and(|to| writing(to).is_some()) =>
        {
            call.value(&["-fprint", "-fprintf", "-fls", "-fprint0"]).and_then(writing)
        }
        "find" | "fd" if call.has(&["-delete"]) => {
            let narrowed = ["-name", "-iname", "-path", "-mtime", "-regex", "-newer", "-size"];
            let root = operands(call).next().unwrap_or(".");
            if call.has(&narrowed) && root != "/" { None } else { removal(root) }
        }
        "git" if super::git_history::words(call).first() == Some(&"clean") => {
            let all = call.short('f') && call.short('d') && call.short('x');
            let elsewhere = call.value(&["-C", "--work-tree"]).map(|folder| (call.resolve)(folder));
            let outside = elsewhere.as_ref().is_some_and(|folder| !call.places.below_project(folder));
            let everything = all && super::git_history::words(call).len() == 1;
            if outside && call.short('f') {
                removal(elsewhere.as_deref().unwrap_or_default())
            } else if everything {
                call.refuse(Category::Files, "It removes what git ignores, too: settings, keys, caches.")
            } else {
                None
            }
        }
        "curl" | "wget" => call.value(&["-o", "--output", "-O", "--output-document"]).and_then(writing),
        "tar" => call.value(&["-C", "--directory"]).and_then(writing),
        "unzip" | "7z" => call.value(&["-d", "-o"]).and_then(writing),
        "sort" | "gcc" | "cc" => call.value(&["-o", "--output"]).and_then(writing),
        "patch" | "ed" | "ex" | "vi" | "vim" | "nvim" | "nano" | "emacs" => operands(call).find_map(writing),
        "git" if super::git_history::words(call).first() == Some(&"clone") => {
            super::git_history::words(call).get(2).copied().and_then(writing)
        }
        _ => None,
    }
}

/// `$UNSET/` and `$UNSET/*`: the top of the machine, where the variable is empty.
fn may_be_root(arg: &Field) -> bool {
    let rest = arg.text.trim_start_matches(UNKNOWN);
    arg.taint.unset
        && rest.len() < arg.text.len()
        && ["/", "/*", "/.", "/.*", "/**", "/{*,.*}"].contains(&rest)
}

fn operands<'a>(call: &'a Call<'_>) -> impl Iterator<Item = &'a str> {
    call.operands().map(|arg| arg.text.as_str()).filter(|text| *text != "-" && !text.is_empty())
}
