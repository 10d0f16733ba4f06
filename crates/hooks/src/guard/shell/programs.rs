//! One program with its arguments: what it really starts, and how the rules judge it.

use super::Shell;
use crate::guard::category::Category;
use crate::guard::paths::Guards;
use crate::guard::rules::{Call, Targets};
use crate::guard::text;

/// Actions of `find`.
const FIND_ACTIONS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir", "-x", "--exec", "-X", "--exec-batch"];
/// Filters of `find`.
const FIND_TESTS: &[&str] =
    &["-name", "-iname", "-path", "-mtime", "-maxdepth", "-regex", "-type", "-newer", "-size", "-empty"];

impl Shell<'_> {
    /// Checks a command; returns its output, as far as it is known.
    pub(super) fn invoke(&mut self, mut argv: Vec<String>, stdin: &str) -> String {
        while argv.len() > 1 && argv[0].is_empty() {
            argv.remove(0);
        }
        let line = argv.join(" ");
        if argv.is_empty() || !self.step(&line) {
            return String::new();
        }
        let first = argv.remove(0);
        let Some(name) = self.program_name(&first, &line) else { return String::new() };
        if name.is_empty() {
            // A variable may be empty: then the next word is the program.
            if argv.first().is_some_and(|next| !next.starts_with('-')) {
                self.invoke(argv, stdin);
            }
            return text::output(&line);
        }
        if let Some(alias) = self.aliases.remove(&first) {
            let rest =
                argv.iter().map(|word| format!(" '{}'", word.replace('\'', r"'\''"))).collect::<String>();
            let out = self.script(&format!("{alias}{rest}"), stdin);
            self.aliases.insert(first, alias);
            return out;
        }
        if self.functions.contains(&first) {
            return text::output(&line);
        }
        self.judge_call(&name, &argv, stdin, &line);
        if let Some(out) = self.builtin(&name, &argv, stdin, &line) {
            return out;
        }
        if let Some(inner) = self.unwrapped(&name, &argv, stdin, &line) {
            return if inner.is_empty() { text::output(&line) } else { self.invoke(inner, stdin) };
        }
        if self.rules.is(&self.rules.programs.shells, &name) {
            return self.run_shell(&argv, stdin, &line);
        }
        if first.contains('/') && self.files.contains_key(&self.path(&first)) {
            let script = self.content(&first);
            return self.run_text(&script, &line);
        }
        if ["make", "gmake"].contains(&name.as_str())
            && argv.iter().any(|arg| ["-", "-f-", "/dev/stdin"].contains(&arg.as_str()))
        {
            return self.run_recipes(stdin, &line);
        }
        self.run_interpreter(&name, &argv, stdin, &line);
        self.look_into_arguments(&name, &argv);
        self.output(&name, &argv, stdin, &line)
    }

    fn run_recipes(&mut self, makefile: &str, line: &str) -> String {
        let recipes = makefile.lines().filter_map(|text| text.strip_prefix('\t')).collect::<Vec<_>>();
        match text::has_gap(makefile) {
            true => self.run_text(makefile, line),
            false => self.run_text(&recipes.join("\n"), line),
        }
    }

    /// The name of a program without its folder, empty for a variable from outside; `None` if unknown.
    fn program_name(&mut self, first: &str, line: &str) -> Option<String> {
        let base = text::base_name(first);
        let known = text::fill(base, "");
        let computed = text::has_output(base) || text::has_positional(base) && known.is_empty();
        let wild = base.contains(['*', '?', '[']) && !["[", "[["].contains(&base);
        if computed || wild {
            if text::producers(base).any(|word| self.rules.is(&self.rules.programs.fetchers, word)) {
                self.refuse(Category::RemoteCode, line, "It runs code from the network.");
            }
            self.unreadable(line, "Which program it would run isn't in the command.");
            return None;
        }
        Some(known.trim_end_matches(".exe").to_lowercase())
    }

    /// Checks a call against the rules, and the paths that it names, changes or removes against theirs.
    fn judge_call(&mut self, name: &str, args: &[String], stdin: &str, line: &str) {
        let rules = self.rules;
        let programs = &rules.programs;
        let call = self.call(name, args, stdin);
        let refusal = rules.judge(&call);
        let changed_by: Vec<bool> = rules
            .change
            .iter()
            .map(|change| change.programs.iter().any(|command| call.is(command)))
            .collect();
        let Call { operands, options, .. } = call;
        self.keep(refusal, line);
        let has_option =
            |patterns: &[String]| options.iter().any(|option| text::matches_any(patterns, option));
        for (change, _) in rules.change.iter().zip(changed_by).filter(|(_, fits)| *fits) {
            if !change.when.is_empty() && !has_option(&change.when) {
                continue;
            }
            let access = if change.removes { Guards::Removing } else { Guards::Writing };
            let last = operands.len().saturating_sub(1);
            let mut targets: Vec<&str> = operands
                .iter()
                .enumerate()
                .filter_map(|(at, operand)| {
                    let chosen = match change.targets {
                        Targets::None => false,
                        Targets::All => true,
                        Targets::First => at < last,
                        Targets::Last => at == last && last > 0,
                        Targets::Rest => at > 0,
                    };
                    chosen.then_some(operand.as_str())
                })
                .collect();
            let valued = args.iter().chain(&options).filter_map(|option| option.split_once('='));
            targets.extend(
                valued
                    .filter(|(option, _)| change.options.iter().any(|one| one == option))
                    .map(|(_, value)| value),
            );
            for target in targets {
                let class = self.paths.judge(&self.path(target), access);
                self.keep_path(class.filter(|_| !target.contains("://")), line);
            }
        }
        let reads = rules.is(&programs.readers, name) || rules.is(&programs.copiers, name);
        let access = if reads { Guards::Reading } else { Guards::Naming };
        if !rules.is(&programs.login_users, name) {
            self.touch_words(args, access, line);
        } else if !reads {
            let names: Vec<String> = args
                .iter()
                .filter(|arg| self.paths.judge(&self.path(arg), Guards::Reading).is_none())
                .cloned()
                .collect();
            self.touch_words(&names, access, line);
        }
        let recursive = has_option(&["-r".into(), "-R".into(), "--recursive".into()]) || name != "rm";
        if rules.is(&programs.destroyers, name) {
            for arg in args {
                self.judge_destroyed(arg, recursive, line);
            }
        }
        if name == "find" || name == "fd" {
            self.judge_find(args, line);
        }
    }

    /// An unknown argument of a program that destroys its arguments.
    fn judge_destroyed(&mut self, arg: &str, recursive: bool, line: &str) {
        if !text::has_gap(arg) {
            return;
        }
        let rules = self.rules;
        // The listed folders, if files were listed.
        for word in text::producers(arg) {
            let path = self.path(word);
            let class = self
                .paths
                .judge(&path, Guards::Removing)
                .filter(|_| !self.paths.project.starts_with(&path) || self.paths.home.starts_with(&path));
            self.keep_path(class, line);
        }
        let rest = text::fill(arg, "");
        let below = rest.trim_matches(['/', '.', '*']).chars().next().is_some();
        let lists = text::first_producers(arg).all(|program| {
            rules.is(&rules.programs.file_listers, program)
                || below && rules.is(&rules.programs.locators, program)
        });
        if recursive && (!lists || text::has_positional(arg)) || *arg == text::variable("@") {
            self.unreadable(line, "What it would remove isn't in the command.");
        }
        let root = ["/", "/*", "/."].contains(&rest.as_str());
        if recursive && root && !arg.contains("NONEMPTY") && !text::has_output(arg) {
            self.refuse(
                Category::Files,
                line,
                "If that variable is empty, it deletes the whole machine; `${NAME:?}` fails instead.",
            );
        }
    }

    /// What `find` removes or runs below its folders.
    fn judge_find(&mut self, args: &[String], line: &str) {
        let rules = self.rules;
        let roots: Vec<&String> = args.iter().take_while(|arg| !arg.starts_with(['-', '(', '!'])).collect();
        let narrowed = args.iter().any(|arg| FIND_TESTS.contains(&arg.as_str()));
        let runs: Vec<&[String]> = args
            .iter()
            .enumerate()
            .filter(|(_, arg)| FIND_ACTIONS.contains(&arg.as_str()))
            .map(|(at, _)| {
                let rest = &args[at + 1..];
                let end = rest.iter().position(|arg| [";", "+"].contains(&arg.as_str()));
                &rest[..end.unwrap_or(rest.len())]
            })
            .collect();
        let removes = args.iter().any(|arg| arg == "-delete")
            || runs.iter().any(|run| {
                run.first().is_some_and(|program| {
                    !rules.is(&rules.programs.readers, text::base_name(program))
                        || rules.is(&rules.programs.shells, program)
                })
            });
        for root in roots.iter().filter(|_| removes) {
            let path = self.path(root);
            let deletes = args.iter().any(|arg| arg == "-delete" || arg == "rm");
            let class = self
                .paths
                .judge(&path, Guards::Removing)
                .filter(|_| path != self.paths.project || deletes && !narrowed);
            self.keep_path(class, line);
        }
        for run in runs {
            let root = roots.first().map_or(".", |root| root.as_str());
            let found = format!("{}/{}", root.trim_end_matches('/'), text::output("find"));
            self.invoke(run.iter().map(|word| word.replace("{}", &found)).collect(), "");
        }
    }

    /// Builtins that change the meaning of later commands.
    fn builtin(&mut self, name: &str, args: &[String], stdin: &str, line: &str) -> Option<String> {
        match name {
            "cd" | "pushd" => {
                let to = args.iter().rev().find(|arg| !arg.starts_with('-') || *arg == "-");
                self.cwd = to.map_or_else(|| self.paths.home.clone(), |to| self.path(to));
            }
            "popd" => self.cwd = self.paths.cwd.clone(),
            "pwd" => return Some(self.cwd.clone() + "\n"),
            "mktemp" => return Some("/tmp/new\n".to_owned()),
            "eval" => return Some(self.run_text(&args.join(" "), line)),
            "source" | "." => {
                let file = args.first()?;
                let script = if file == "/dev/stdin" { stdin.to_owned() } else { self.content(file) };
                if file == "/dev/stdin" || self.files.contains_key(&self.path(file)) {
                    return Some(self.run_text(&script, line));
                }
            }
            "alias" => {
                let named = args.iter().filter_map(|arg| arg.split_once('='));
                self.aliases.extend(named.map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
            "hash" => self.aliases.extend(match args {
                [option, program, name] if option == "-p" => Some((name.clone(), program.clone())),
                _ => None,
            }),
            "trap" => {
                drop(args.first().filter(|code| !code.starts_with('-')).map(|code| self.script(code, "")))
            }
            "export" | "declare" | "local" | "readonly" | "typeset" => {
                for (name, value) in args.iter().filter_map(|arg| arg.split_once('=')) {
                    self.assign(name, vec![value.to_owned()]);
                }
            }
            "read" | "mapfile" | "readarray" | "select" => {
                let value = if text::has_gap(stdin) { stdin.to_owned() } else { text::output("read") };
                for name in args.iter().filter(|arg| !arg.starts_with('-')) {
                    self.vars.insert(name.clone(), vec![value.clone()]);
                }
            }
            "printf" if args.first().is_some_and(|arg| arg == "-v") => {
                self.vars.insert(args.get(1)?.clone(), vec![text::output("printf")]);
            }
            "set" if args.first().is_some_and(|arg| arg == "--") => {}
            _ => return None,
        }
        Some(String::new())
    }

    /// The command that a wrapper starts, empty if it has none; `None` for other programs.
    fn unwrapped(&mut self, name: &str, args: &[String], stdin: &str, line: &str) -> Option<Vec<String>> {
        match name {
            "env" => return Some(self.env(args, line)),
            "xargs" | "parallel" => return Some(self.xargs(args, stdin)),
            "command" if args.first().is_some_and(|arg| ["-v", "-V"].contains(&arg.as_str())) => return None,
            _ => {}
        }
        let rules = self.rules;
        for wrapper in rules.wrapper.iter().filter(|wrapper| rules.is(&wrapper.programs, name)) {
            let after = |verb: &String| args.iter().position(|arg| arg == verb);
            let start = match wrapper.verbs.is_empty() {
                true => 0,
                false => match wrapper.verbs.iter().find_map(after) {
                    Some(at) => at + 1,
                    None => continue,
                },
            };
            let (own, inner) = split_options(&args[start..], &wrapper.values, wrapper.skip);
            // `-c` and `--call` take a command line.
            for pair in
                own.windows(2).filter(|pair| pair[0].ends_with('c') || pair[0] == "--call" || pair[0] == "-o")
            {
                self.run_quietly(pair[1].rsplit_once("Command=").map_or(pair[1].as_str(), |(_, line)| line));
            }
            return match inner {
                [one, ..] if one.contains(char::is_whitespace) => {
                    self.script(one, stdin);
                    Some(Vec::new())
                }
                [] => None,
                inner => Some(inner.to_vec()),
            };
        }
        None
    }

    fn env(&mut self, args: &[String], line: &str) -> Vec<String> {
        let mut rest = args;
        loop {
            rest = match rest {
                [option, script, words @ ..] if option == "-S" || option == "--split-string" => {
                    self.script(&format!("env {script} {}", words.join(" ")), "");
                    return Vec::new();
                }
                [option, _, after @ ..] if ["-u", "--unset", "-C", "--chdir"].contains(&option.as_str()) => {
                    after
                }
                [option, after @ ..] if option.starts_with('-') => after,
                [assignment, after @ ..] if assignment.contains('=') => {
                    let (name, value) = assignment.split_once('=').unwrap_or_default();
                    self.assign(name, vec![value.to_owned()]);
                    after
                }
                inner => break self.printed_environment(args, inner, line),
            };
        }
    }

    /// `env` without a command prints everything, whatever it sets.
    fn printed_environment(&mut self, args: &[String], inner: &[String], line: &str) -> Vec<String> {
        if inner.is_empty() {
            let options: Vec<String> = args.iter().filter(|arg| arg.starts_with('-')).cloned().collect();
            let refusal = self.rules.judge(&self.call("env", &options, ""));
            self.keep(refusal, line);
        }
        inner.to_vec()
    }

    /// The command of `xargs` or `parallel` with its piped input.
    fn xargs(&mut self, args: &[String], stdin: &str) -> Vec<String> {
        let values = [
            "-n",
            "-P",
            "-I",
            "-d",
            "-L",
            "-s",
            "-a",
            "-E",
            "-j",
            "--jobs",
            "--max-args",
            "--max-procs",
            "--delimiter",
            "--arg-file",
            "-N",
        ];
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        let (own, inner) = split_options(args, &values, 0);
        let value = |names: &[&str]| {
            own.iter().position(|arg| names.contains(&arg.as_str())).and_then(|at| own.get(at + 1))
        };
        let (inner, given) = match inner.iter().position(|arg| arg.starts_with(":::")) {
            Some(at) => (&inner[..at], inner[at + 1..].join(" ")),
            None => (
                inner,
                value(&["-a", "--arg-file"]).map_or_else(|| stdin.to_owned(), |file| self.content(file)),
            ),
        };
        let mark = value(&["-I"])
            .cloned()
            .or_else(|| own.iter().find_map(|arg| Some(arg.strip_prefix("-I")?.to_owned())))
            .unwrap_or_else(|| "{}".to_owned());
        let given = given.replace(['\'', '"', '\0'], " ");
        let mut words: Vec<String> = inner.iter().map(|word| word.replace(&mark, given.trim())).collect();
        match inner.iter().any(|word| word.contains(&mark)) {
            true if !words.is_empty() => {}
            _ => words.extend(given.split_whitespace().take(64).map(str::to_owned)),
        }
        if inner.is_empty() { Vec::new() } else { words }
    }

    /// `sh`, `bash` and similar: a script from `-c`, a file that this command wrote, or piped input.
    fn run_shell(&mut self, args: &[String], stdin: &str, line: &str) -> String {
        let mut at = 0;
        let mut interactive = false;
        while let Some(arg) = args.get(at).filter(|arg| arg.starts_with(['-', '+']) && arg.len() > 1) {
            let letters = !arg.starts_with("--");
            if letters && arg.contains('c') && arg.starts_with('-') {
                let script = args.get(at + 1).cloned().unwrap_or_default();
                return self.run_text(&script, line);
            }
            interactive |= letters && arg.contains('i');
            let valued = ["-o", "+o", "-O", "+O", "--rcfile", "--init-file"].contains(&arg.as_str());
            at += if valued { 2 } else { 1 };
            if arg == "-s" {
                return self.run_text(stdin, line);
            }
        }
        match args.get(at).filter(|file| *file != "-" && *file != "/dev/stdin") {
            Some(file) if self.files.contains_key(&self.path(file)) => {
                let script = self.content(file);
                self.run_text(&script, line)
            }
            Some(_) => text::output(line),
            None if interactive && !stdin.is_empty() => {
                self.refuse(Category::ReverseShell, line, "It gives another machine a shell.");
                String::new()
            }
            None => self.run_text(stdin, line),
        }
    }

    /// Arguments that may be command lines for this machine: `tar --to-command=…`, `git -c core.pager=…`, `vim -c
    /// ':!…'`.
    fn look_into_arguments(&mut self, name: &str, args: &[String]) {
        let call = self.call(name, args, "");
        let is_text = self.rules.programs.text.iter().any(|command| call.is(command));
        // The options before git's verb are settings.
        let verb = call.operands.first().filter(|_| name == "git");
        let settings = args.iter().position(|arg| Some(arg) == verb).unwrap_or(0);
        let looked_at = if is_text { &args[..settings] } else { args };
        for arg in looked_at.iter().filter(|arg| arg.contains(' ')) {
            let arg = arg.trim_end_matches([' ', '&', ';', '|', '#']);
            let starts = arg.match_indices(['=', '!', '|']).map(|(at, _)| at + 1);
            let words =
                ["shell ", "exec ", "system "].iter().filter_map(|word| Some(arg.find(word)? + word.len()));
            for at in [0].into_iter().chain(starts.take(8)).chain(words) {
                self.run_quietly(&arg[at..]);
            }
            if arg.contains("system(") || arg.contains("execute(") {
                self.code(arg, name);
            }
        }
    }

    /// A program's output: only known if it echoes its words or its input.
    fn output(&mut self, name: &str, args: &[String], stdin: &str, line: &str) -> String {
        let operands: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
        let has = |flags: &[&str]| args.iter().any(|arg| flags.contains(&arg.as_str()));
        let programs = &self.rules.programs;
        match name {
            "echo" => {
                let escapes = has(&["-e", "-ne", "-en"]);
                let words = args.iter().skip_while(|arg| ["-n", "-e", "-ne", "-en"].contains(&arg.as_str()));
                let end = if has(&["-n", "-ne", "-en"]) { "" } else { "\n" };
                let text = words.map(String::as_str).collect::<Vec<_>>().join(" ") + end;
                if escapes { text::unescape(&text) } else { text }
            }
            "printf" if !operands.is_empty() => {
                let mut words = operands[1..].iter();
                let parts: Vec<String> = text::unescape(operands[0]).split("%s").map(str::to_owned).collect();
                let mut out = parts[0].clone();
                for part in &parts[1..] {
                    out.push_str(words.next().map_or("", |word| word.as_str()));
                    out.push_str(part);
                }
                if out.contains('%') || words.next().is_some() { text::output(line) } else { out }
            }
            "cat" if operands.is_empty() && !stdin.is_empty() => stdin.to_owned(),
            "cat" => operands.iter().map(|file| self.content(file)).collect(),
            "tee" => {
                for file in operands {
                    self.remember(file, stdin);
                }
                stdin.to_owned()
            }
            "which" | "command" => operands.last().map_or_else(String::new, |name| {
                let own = self.paths.own.iter().find(|own| text::base_name(own) == name.as_str());
                own.cloned().unwrap_or_else(|| format!("/usr/bin/{name}")) + "\n"
            }),
            "chmod" => String::new(),
            _ if self.rules.is(&programs.fetchers, name) => {
                let to = args.windows(2).find(|pair| {
                    ["-o", "-O", "--output", "--output-document"].contains(&pair[0].as_str())
                        || pair[0].starts_with('-') && !pair[0].starts_with("--") && pair[0].ends_with('o')
                });
                let remote = operands
                    .iter()
                    .find(|arg| arg.contains("://"))
                    .map(|url| text::base_name(url).to_owned());
                let file =
                    to.map(|pair| pair[1].clone()).filter(|file| !file.contains("://")).or_else(|| {
                        remote.filter(|_| has(&["-O", "-LO", "-sLO", "-fsSLO", "-OL"]) || name == "wget")
                    });
                match file.filter(|file| file != "-") {
                    Some(file) => self.remember(&file, &text::output(line)),
                    None => return text::output(line),
                }
                text::output(line)
            }
            _ => {
                let before = text::producers(stdin).collect::<Vec<_>>().join(" ");
                text::output(format!("{before} {line}").trim())
            }
        }
    }
}

/// A wrapper's own options and operands, and the command after them.
fn split_options<'a>(args: &'a [String], values: &[String], skip: usize) -> (&'a [String], &'a [String]) {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let assigns = arg
            .split_once('=')
            .is_some_and(|(name, _)| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
        match arg.as_str() {
            "--" => {
                at += 1;
                break;
            }
            _ if values.contains(arg) => at += 2,
            text if text.starts_with('-') && text.len() > 1 || assigns => at += 1,
            _ => break,
        }
    }
    args.split_at((at + skip).min(args.len()))
}
