//! The programs that a check's command names.

/// The simple commands of a check: the command itself, or those of the line that a shell is given. Rough: quotes do not
/// join words.
pub fn simple_commands(argv: &[String]) -> Vec<Vec<String>> {
    let is_shell = argv
        .first()
        .is_some_and(|p| matches!(p.rsplit('/').next().unwrap_or(p), "sh" | "bash" | "dash" | "zsh" | "ksh"));
    let Some(line) = argv.get(2).filter(|_| is_shell && argv[1].starts_with('-') && argv[1].ends_with('c'))
    else {
        return if argv.is_empty() { Vec::new() } else { vec![argv.to_vec()] };
    };
    line.split([';', '&', '|', '\n', '(', ')', '{', '}'])
        .map(|command| {
            let skipped = ["if", "then", "do", "while", "until", "!", "exec", "time", "else", "env"];
            let words = command.split_whitespace().map(|w| w.trim_matches(['\'', '"']));
            let words = words.skip_while(|w| w.contains('=') || skipped.contains(w));
            words.map(str::to_owned).collect::<Vec<_>>()
        })
        .filter(|words| !words.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simple_commands_of_a_line_are_told_apart() {
        let argv = ["sh", "-c", "CI=1 yarn lint && make -s test"].map(str::to_owned);
        assert_eq!(simple_commands(&argv), [vec!["yarn", "lint"], vec!["make", "-s", "test"]]);
        assert_eq!(simple_commands(&["cargo".to_owned(), "test".to_owned()]), [vec!["cargo", "test"]]);
    }
}
