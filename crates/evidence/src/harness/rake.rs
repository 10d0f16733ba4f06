//! From `rake` to the scripts that its file runs: `sh 'ruby tools/check.rb'`.

use super::shell::join;
use super::{Via, Walk};

/// Names under which Rake looks for its file, in its order.
const RAKEFILES: &[&str] = &["rakefile", "Rakefile", "rakefile.rb", "Rakefile.rb"];

impl Walk<'_> {
    pub(super) fn rake(&mut self, folder: &str, depth: u32) {
        let file = RAKEFILES.iter().filter_map(|name| join(folder, name)).find(|p| (self.read)(p).is_some());
        let Some(text) = file.and_then(|file| (self.read)(&file)) else { return };
        if !self.seen.insert(format!("rake in {folder}")) {
            return;
        }
        for line in command_lines(&text) {
            self.lines(&line, folder, Via::Definition, depth + 1);
        }
    }
}

/// The command lines of a Rakefile, as far as they are plain texts.
fn command_lines(text: &str) -> Vec<String> {
    let line = |line: &str| {
        let line = line.trim();
        let word = ["sh", "ruby", "system"].into_iter().find(|word| {
            line.strip_prefix(word).is_some_and(|rest| rest.starts_with([' ', '(', '"', '\'']))
        })?;
        let rest = line[word.len()..].trim_start_matches([' ', '(']);
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let command = rest[1..].split(quote).next().unwrap_or_default();
        Some(if word == "ruby" { format!("ruby {command}") } else { command.to_owned() })
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::reach;

    #[test]
    fn scripts_behind_tasks_are_found() {
        let rake = "task :unit do\n  sh 'ruby tools/check.rb'\n  system(\"sh tools/more.sh\")\n  puts 'sh no'\nend\n";
        assert_eq!(command_lines(rake), ["ruby tools/check.rb", "sh tools/more.sh"]);
        let read = |path: &str| match path {
            "Rakefile" => Some(rake.to_owned()),
            "tools/check.rb" | "tools/more.sh" => Some(String::new()),
            _ => None,
        };
        let found = reach(&["rake".to_owned(), "unit".to_owned()], "", &read);
        assert_eq!(found.scripts.into_keys().collect::<Vec<_>>(), ["tools/check.rb", "tools/more.sh"]);
    }
}
