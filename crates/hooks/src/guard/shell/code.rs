//! Programs of other languages on a command line (`python -c`, `node -e`, `awk`): their texts and what they call, without
//! reading the language itself.

use super::Shell;
use super::filters::{from_base64, from_hex};
use super::invoke::quoted_words;
use super::languages::{
    AWKS, DECODES, EVALS, FETCHES, HOMES, INTERPRETERS, LITERALS_MAX, REMOVES, STARTS, WRITES,
    dumps_environment, glued, is_assignment, lists, literals, names_whole_home,
};
use crate::guard::category::{Category, Refusal};
use crate::guard::rules;
use crate::guard::value::{Field, UNKNOWN, Value};

impl Shell<'_> {
    /// Looks at the code that an interpreter is given.
    pub(super) fn run_code(&mut self, name: &str, args: &[Field], stdin: &Value, words: &str) {
        if AWKS.contains(&name) {
            let program = args.iter().find(|arg| !arg.text.starts_with('-') && !is_assignment(&arg.text));
            if let Some(program) = program.filter(|p| {
                ["system", "getline", "| \"", "/inet/", "ENVIRON"].iter().any(|word| p.text.contains(word))
            }) {
                let code = program.text.clone();
                self.code(&code, words);
            }
            return;
        }
        let base = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        if ["pwsh", "powershell"].contains(&base) {
            return self.power_shell(args, stdin, words);
        }
        let Some((_, options)) = INTERPRETERS.iter().find(|(known, _)| *known == base) else { return };
        if ["expect", "tclsh"].contains(&base) {
            args.iter().for_each(|arg| self.spawned(&arg.text));
            self.spawned(&stdin.text);
        }
        let mut given = false;
        for (at, arg) in args.iter().enumerate() {
            let text = arg.text.as_str();
            let bundled = text.starts_with('-')
                && !text.starts_with("--")
                && text.len() <= 4
                && text.ends_with(['c', 'e', 'E', 'r', 'p']);
            if options.contains(&text) || bundled && !options.is_empty() {
                if let Some(code) = args.get(at + 1) {
                    given = true;
                    self.code_value(&code.value(), words);
                }
            } else if let Some((_, code)) =
                text.split_once('=').filter(|(option, _)| options.contains(option))
            {
                given = true;
                let code = code.to_owned();
                self.code(&code, words);
            }
        }
        if given {
            return;
        }
        let file = args.iter().find(|arg| !arg.text.starts_with('-') || arg.text == "-");
        match file.map(|file| file.text.clone()) {
            None => self.code_value(stdin, words),
            Some(file) if file == "-" || file == "/dev/stdin" => self.code_value(stdin, words),
            Some(file) => {
                let path = self.path(&file);
                if self.files.contains_key(&path) {
                    let content = self.content(&path);
                    self.code_value(&content, words);
                }
            }
        }
    }

    /// What `expect` starts.
    fn spawned(&mut self, code: &str) {
        for line in code.split([';', '\n', '{', '}']).take(LITERALS_MAX) {
            let starts = ["spawn ", "exec ", "system "];
            if let Some(script) = starts.iter().find_map(|start| line.trim_start().strip_prefix(start)) {
                self.quiet_script(script.trim_start_matches("-noecho "));
            }
        }
    }

    /// The words of another shell: what removes, and what runs what was fetched.
    fn power_shell(&mut self, args: &[Field], stdin: &Value, words: &str) {
        let code = args
            .iter()
            .map(|arg| arg.text.as_str())
            .chain([stdin.text.as_str()])
            .collect::<Vec<_>>()
            .join(" ");
        let lower = code.to_lowercase();
        let has = |names: &[&str]| names.iter().any(|name| lower.contains(name));
        if has(&["iex", "invoke-expression"])
            && has(&["iwr", "irm", "invoke-webrequest", "invoke-restmethod", "downloadstring"])
            || has(&["-encodedcommand", "-enc "])
        {
            self.refuse(
                Refusal::new(Category::RemoteCode, words, "It runs what nobody can read here."),
                words,
            );
        }
        if has(&["remove-item", "rm ", "del ", "rmdir ", "ri "]) {
            let mut dangers =
                lower.split_whitespace().map(|word| word.trim_matches(['\'', '"', ';'])).filter_map(|word| {
                    let word = word.replace("$home", "~").replace("$env:home", "~");
                    word.starts_with(['/', '~', '.'])
                        .then(|| self.places.removal(&self.path(&word)))
                        .flatten()
                });
            let danger = dangers.next();
            self.judged(danger.map(|(category, why)| Refusal::new(category, words, why)), words);
        }
    }

    fn code_value(&mut self, code: &Value, words: &str) {
        if !code.is_known() && (code.taint.fetched || code.taint.decoded) {
            let why = "It runs what nobody can read here.";
            self.refuse(Refusal::new(Category::RemoteCode, words, why), words);
        }
        if code.text.trim_matches(UNKNOWN).len() > 3 {
            let text = code.text.clone();
            self.code(&text, words);
        }
    }

    /// Judges a program by its literals and the names in it.
    pub(super) fn code(&mut self, code: &str, words: &str) {
        let code = &glued(code);
        let has = |names: &[&str]| names.iter().any(|name| code.contains(name));
        let refuse =
            |shell: &mut Self, category, why: &str| shell.refuse(Refusal::new(category, code, why), words);
        let forks =
            has(&["fork"]) && has(&["while", "loop", "for(;;)", "for (;;)"]) && !has(&["waitpid", "os.wait"]);
        if forks && code.len() < 400 {
            refuse(self, Category::Kill, "It starts copies of itself without end.");
        }
        let hides = ["chr(", "fromCharCode", "[::-1]"];
        if has(&hides) && has(&["system(", "popen(", "execSync(", "exec(", "spawn("]) {
            refuse(self, Category::RemoteCode, "It hides what it runs.");
        }
        if has(&[
            "socket",
            "Socket",
            "require(\"net\")",
            "require('net')",
            "net.connect",
            "TCPSocket",
            "fsockopen",
            "/inet/",
        ]) && has(&["connect", "Connect", "TCPSocket", "fsockopen", "INET", "/inet/"])
            && has(&[
                "dup2",
                "pty",
                "spawn",
                "subprocess",
                "/bin/sh",
                "/bin/bash",
                "exec",
                "STDIN",
                "system",
                "getline",
            ])
        {
            refuse(self, Category::ReverseShell, "It gives a shell to a machine far away.");
        }
        if has(FETCHES) && has(EVALS) {
            refuse(self, Category::RemoteCode, "It runs what the network sends.");
        }
        if dumps_environment(code) {
            refuse(self, Category::Environment, "It prints the whole environment, with its keys.");
        }
        if has(REMOVES) && names_whole_home(code) {
            refuse(self, Category::Files, "It would take the home folder with it.");
        }
        let found = literals(code);
        let starts = has(STARTS);
        if has(DECODES) && (has(EVALS) || starts) {
            let mut read = 0;
            for literal in found.iter().filter(|literal| literal.len() >= 8) {
                if let Some(text) = from_base64(literal).or_else(|| from_hex(literal)) {
                    read += 1;
                    self.quiet_script(&text);
                    self.code_inner(&text, words);
                }
            }
            if read == 0 && has(EVALS) {
                refuse(self, Category::RemoteCode, "It runs what nobody can read here.");
            }
        }
        for literal in found.iter().take(LITERALS_MAX) {
            if starts {
                self.quiet_script(literal);
            }
            if has(EVALS) && literal.contains('(') {
                self.code_inner(literal, words);
            }
            if has(HOMES) && literal.len() < 256 {
                // It is put behind the name of the home folder.
                let below = self.path(&format!("~/{}", literal.trim_start_matches('/')));
                self.judged(rules::reads(&below, words, self.places), words);
                if has(WRITES) {
                    self.judged(rules::writes(&below, words, self.places), words);
                }
            }
            let literal = literal.trim_start_matches('>');
            let path = self.path(literal);
            if literal.starts_with(['/', '~', '.']) && literal.len() < 256 {
                self.judged(rules::reads(&path, words, self.places), words);
                if has(REMOVES) {
                    let danger = self.places.removal(&path);
                    self.judged(danger.map(|(category, why)| Refusal::new(category, words, why)), words);
                } else if has(WRITES) {
                    self.judged(rules::writes(&path, words, self.places), words);
                }
            }
            self.judged(rules::sql(literal, words), words);
        }
        if starts {
            for list in lists(code) {
                let fields: Vec<Field> = literals(&list).into_iter().map(Field::plain).collect();
                if fields.len() > 1 {
                    self.quiet_script(&quoted_words(&fields));
                }
            }
        }
    }

    /// Code within code, one level.
    fn code_inner(&mut self, code: &str, words: &str) {
        if self.depth < 6 && (code.contains('(') || code.contains(' ')) {
            self.depth += 1;
            for literal in literals(code) {
                self.quiet_script(&literal);
            }
            self.depth -= 1;
        }
        self.judged(rules::sql(code, words), words);
    }

    /// Walks a text that may be a script; one that is none says nothing.
    pub(super) fn quiet_script(&mut self, text: &str) {
        if self.is_over() || text.len() < 2 {
            return;
        }
        self.script(text, &Value::default());
        if self.refusal.as_ref().is_some_and(|refusal| refusal.category == Category::Unreadable) {
            self.refusal = None;
        }
    }
}
