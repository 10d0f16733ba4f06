//! Words, expanded as far as the command line shows: quotes, braces, literal variables. Everything else is a gap.

use super::Shell;
use crate::guard::text::{self, push, unescape};
use brush_parser::ParserOptions;
use brush_parser::ast::Word;
use brush_parser::word::{
    self, BraceExpressionMember, BraceExpressionOrText, Parameter, ParameterExpr as Expr, SpecialParameter,
    TildeExpr, WordPiece, WordPieceWithSource,
};

/// Most words of one brace expression.
const BRACES_MAX: usize = 64;
/// Most words of one word.
const FIELDS_MAX: usize = 512;

#[derive(Default)]
struct Fields {
    done: Vec<String>,
    open: Option<String>,
}

impl Fields {
    fn add(&mut self, text: &str) {
        push(self.open.get_or_insert_with(String::new), text);
    }

    fn close(&mut self) {
        if self.done.len() < FIELDS_MAX {
            self.done.extend(self.open.take());
        }
    }

    /// An unquoted expansion: its separators end words.
    fn split(&mut self, text: &str, separators: &str) {
        for (number, part) in text.split(|c| separators.contains(c)).enumerate() {
            if number > 0 {
                self.close();
            }
            if !part.is_empty() {
                self.add(part);
            }
        }
    }
}

impl Shell<'_> {
    pub(super) fn fields(&mut self, word: &Word) -> Vec<String> {
        let mut fields = Fields::default();
        for text in braces(&word.value) {
            match word::parse(&text, &ParserOptions::default()) {
                Ok(pieces) => self.pieces(&pieces, false, &mut fields),
                Err(_) => fields.add(&text),
            }
            fields.close();
        }
        fields.done
    }

    /// An unsplit word: in an assignment or a redirection.
    pub(super) fn text(&mut self, text: &str) -> String {
        match word::parse(text, &ParserOptions::default()) {
            Ok(pieces) => self.joined(&pieces),
            Err(_) => text.to_owned(),
        }
    }

    pub(super) fn here_document(&mut self, text: &str) -> String {
        match word::parse_heredoc(text, &ParserOptions::default()) {
            Ok(pieces) => self.joined(&pieces),
            Err(_) => text.to_owned(),
        }
    }

    /// Walks the commands within an arithmetic expression or an index.
    pub(super) fn arithmetic(&mut self, expression: &str) {
        if expression.contains("$(") || expression.contains('`') {
            self.text(expression);
        }
    }

    fn joined(&mut self, pieces: &[WordPieceWithSource]) -> String {
        let mut fields = Fields::default();
        self.pieces(pieces, true, &mut fields);
        fields.close();
        fields.done.join(" ")
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource], quoted: bool, fields: &mut Fields) {
        for piece in pieces {
            self.piece(&piece.piece, quoted, fields);
        }
    }

    fn piece(&mut self, piece: &WordPiece, quoted: bool, fields: &mut Fields) {
        match piece {
            WordPiece::Text(text) | WordPiece::SingleQuotedText(text) => fields.add(text),
            WordPiece::AnsiCQuotedText(text) => fields.add(&unescape(text)),
            WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                fields.add("");
                self.pieces(inner, true, fields);
            }
            WordPiece::EscapeSequence(text) => {
                let rest = text.strip_prefix('\\').unwrap_or(text);
                fields.add(if rest == "\n" { "" } else { rest });
            }
            WordPiece::TildeExpansion(tilde) => {
                let text = match tilde {
                    TildeExpr::Home => self.paths.home.clone(),
                    TildeExpr::UserHome(name) if name == "root" => "/root".to_owned(),
                    TildeExpr::UserHome(name) => format!("/home/{name}"),
                    _ => self.cwd.clone(),
                };
                fields.add(&text);
            }
            WordPiece::ParameterExpansion(expression) => {
                for (number, value) in self.parameter(expression).iter().enumerate() {
                    if number > 0 {
                        fields.close();
                    }
                    if quoted { fields.add(value) } else { fields.split(value, &self.separators()) }
                }
            }
            WordPiece::CommandSubstitution(script) => self.substitute(script, quoted, fields),
            WordPiece::BackquotedCommandSubstitution(script) => {
                self.substitute(&script.replace("\\`", "`"), quoted, fields);
            }
            WordPiece::ArithmeticExpression(expression) => {
                self.arithmetic(&expression.value);
                fields.add(
                    expression
                        .value
                        .trim()
                        .parse::<i64>()
                        .map_or(&text::variable("#"), |_| expression.value.trim()),
                );
            }
        }
    }

    fn substitute(&mut self, script: &str, quoted: bool, fields: &mut Fields) {
        let kept = (self.cwd.clone(), self.vars.clone());
        let out = self.script(script, "");
        (self.cwd, self.vars) = kept;
        let out = out.trim_end_matches('\n');
        if quoted { fields.add(out) } else { fields.split(out, &self.separators()) }
    }

    fn separators(&self) -> String {
        self.vars.get("IFS").map_or_else(|| " \t\n".to_owned(), |values| values.concat())
    }

    /// A parameter's value: its literal value, its default, or a gap.
    fn parameter(&mut self, expression: &Expr) -> Vec<String> {
        match expression {
            Expr::Parameter { parameter, indirect: false } => self.value(parameter),
            Expr::UseDefaultValues { parameter, default_value, .. }
            | Expr::AssignDefaultValues { parameter, default_value, .. } => {
                let values = self.value(parameter);
                match values.iter().any(|value| text::has_gap(value)) {
                    true => vec![self.text(default_value.as_deref().unwrap_or_default())],
                    false => values,
                }
            }
            Expr::UseAlternativeValue { alternative_value, .. } => {
                vec![self.text(alternative_value.as_deref().unwrap_or_default())]
            }
            Expr::IndicateErrorIfNullOrUnset { parameter, .. } => match self.value(parameter).as_slice() {
                [value] if text::has_gap(value) => vec![text::variable("NONEMPTY")],
                values => values.to_vec(),
            },
            Expr::ParameterLength { .. } => vec![text::variable("#")],
            Expr::Substring { parameter, offset, length, .. } => {
                self.arithmetic(&offset.value);
                self.arithmetic(length.as_ref().map_or("", |length| &length.value));
                self.changed(parameter)
            }
            Expr::Transform { parameter, .. } => {
                // `${x@P}` expands once more.
                let values = self.value(parameter);
                values.iter().for_each(|value| drop(self.text(value)));
                values
            }
            Expr::RemoveSmallestSuffixPattern { parameter, .. }
            | Expr::RemoveLargestSuffixPattern { parameter, .. }
            | Expr::RemoveSmallestPrefixPattern { parameter, .. }
            | Expr::RemoveLargestPrefixPattern { parameter, .. }
            | Expr::ReplaceSubstring { parameter, .. } => self.changed(parameter),
            _ => vec![text::output("expansion")],
        }
    }

    /// A modified literal is no longer known; a variable from outside is unknown anyway.
    fn changed(&self, parameter: &Parameter) -> Vec<String> {
        let values = self.value(parameter);
        match values.iter().all(|value| text::has_gap(value)) {
            true => values,
            false => vec![text::output("expansion")],
        }
    }

    fn value(&self, parameter: &Parameter) -> Vec<String> {
        match parameter {
            Parameter::Named(name) => match (self.vars.get(name), name.as_str()) {
                (Some(values), _) => values.first().cloned().into_iter().collect(),
                (None, "HOME") => vec![self.paths.home.clone()],
                (None, "PWD") => vec![self.cwd.clone()],
                (None, "SHELL" | "BASH") => vec!["/bin/bash".to_owned()],
                (None, "TMPDIR") => vec!["/tmp".to_owned()],
                (None, name) => vec![text::variable(name)],
            },
            Parameter::NamedWithAllIndices { name, .. } => {
                self.vars.get(name).cloned().unwrap_or_else(|| vec![text::variable(name)])
            }
            Parameter::NamedWithIndex { name, index } => {
                let known = self.vars.get(name).zip(index.trim().parse::<usize>().ok());
                vec![
                    known
                        .and_then(|(list, at)| list.get(at).cloned())
                        .unwrap_or_else(|| text::output("expansion")),
                ]
            }
            Parameter::Special(SpecialParameter::ShellName) => vec![text::variable("0")],
            Parameter::Positional(number) => vec![text::variable(&number.to_string())],
            Parameter::Special(SpecialParameter::AllPositionalParameters { .. }) => vec![text::variable("@")],
            Parameter::Special(SpecialParameter::LastExitStatus) => vec!["0".to_owned()],
            Parameter::Special(_) => vec![text::variable("!")],
        }
    }
}

fn braces(text: &str) -> Vec<String> {
    let parsed = text.contains('{').then(|| word::parse_brace_expansions(text, &ParserOptions::default()));
    match parsed {
        Some(Ok(Some(pieces))) => expanded(&pieces),
        _ => vec![text.to_owned()],
    }
}

fn expanded(pieces: &[BraceExpressionOrText]) -> Vec<String> {
    let mut words = vec![String::new()];
    for piece in pieces {
        let ends: Vec<String> = match piece {
            BraceExpressionOrText::Text(text) => vec![text.clone()],
            BraceExpressionOrText::Expr(members) => {
                members.iter().flat_map(member).take(BRACES_MAX).collect()
            }
        };
        let longer = words.iter().flat_map(|word| ends.iter().map(move |end| format!("{word}{end}")));
        words = longer.take(BRACES_MAX).collect();
    }
    words
}

fn member(member: &BraceExpressionMember) -> Vec<String> {
    match member {
        BraceExpressionMember::Child(pieces) => expanded(pieces),
        BraceExpressionMember::CharSequence { start, end, .. } => {
            (*start..=*end).map(String::from).take(BRACES_MAX).collect()
        }
        // The exact numbers don't matter.
        BraceExpressionMember::NumberSequence { .. } => vec![text::variable("#")],
    }
}
