//! Words, expanded as far as they are known: quotes, braces, variables, substitutions.

use super::Shell;
use crate::guard::value::{Field, Taint, UNKNOWN, Value};
use brush_parser::ParserOptions;
use brush_parser::ast::Word;
use brush_parser::word::{
    self, BraceExpressionMember, BraceExpressionOrText, Parameter, ParameterExpr, SpecialParameter,
    TildeExpr, WordPiece, WordPieceWithSource,
};

/// Words that one brace expression may come to.
const BRACES_MAX: usize = 64;
/// Fields that one word may come to.
const FIELDS_MAX: usize = 512;

/// Fields under construction.
#[derive(Default)]
struct Fields {
    done: Vec<Field>,
    open: Option<Field>,
}

impl Fields {
    fn text(&mut self, text: &str, glob: bool, taint: Taint) {
        let field = self.open.get_or_insert_with(Field::default);
        field.text.push_str(text);
        field.glob |= glob;
        field.taint = field.taint.and(taint);
    }

    fn close(&mut self) {
        if self.done.len() < FIELDS_MAX {
            self.done.extend(self.open.take());
        }
    }

    /// An unquoted expansion: its white space ends fields.
    fn split(&mut self, value: &Value, between: &[char]) {
        let glob = value.text.contains(['*', '?', '[']);
        let mut parts = value.text.split(between);
        if let Some(first) = parts.next().filter(|first| !first.is_empty()) {
            self.text(first, glob, value.taint);
        }
        for part in parts {
            self.close();
            if !part.is_empty() {
                self.text(part, glob, value.taint);
            }
        }
    }
}

impl Shell<'_> {
    /// The fields that a word comes to.
    pub(super) fn fields(&mut self, word: &Word) -> Vec<Field> {
        let texts = match word.value.contains('{') {
            true => braces(&word.value),
            false => vec![word.value.clone()],
        };
        let mut fields = Fields::default();
        for text in texts {
            match word::parse(&text, &ParserOptions::default()) {
                Ok(pieces) => self.pieces(&pieces, false, &mut fields),
                Err(_) => fields.text(&text, false, Taint::default()),
            }
            fields.close();
        }
        fields.done
    }

    /// What a word comes to where it is not split: in an assignment, a redirection.
    pub(super) fn text(&mut self, word: &Word) -> Value {
        match word::parse(&word.value, &ParserOptions::default()) {
            Ok(pieces) => self.joined_pieces(&pieces),
            Err(_) => Value::known(word.value.clone()),
        }
    }

    /// The same for the text within `${x:-…}`.
    pub(super) fn inner_text(&mut self, text: &str) -> Value {
        self.text(&Word { value: text.to_owned(), loc: None })
    }

    /// The text of a here-document with expansions.
    pub(super) fn here_document(&mut self, text: &str) -> Value {
        match word::parse_heredoc(text, &ParserOptions::default()) {
            Ok(pieces) => self.joined_pieces(&pieces),
            Err(_) => Value::known(text),
        }
    }

    fn joined_pieces(&mut self, pieces: &[WordPieceWithSource]) -> Value {
        let mut fields = Fields::default();
        self.pieces(pieces, true, &mut fields);
        fields.close();
        let mut value = Value::default();
        for (number, field) in fields.done.iter().enumerate() {
            if number > 0 {
                value.push(&Value::known(" "));
            }
            value.push(&field.value());
        }
        value
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource], quoted: bool, fields: &mut Fields) {
        for piece in pieces {
            self.piece(&piece.piece, quoted, fields);
        }
    }

    fn piece(&mut self, piece: &WordPiece, quoted: bool, fields: &mut Fields) {
        let plain = Taint::default();
        match piece {
            WordPiece::Text(text) => {
                fields.text(text, !quoted && text.contains(['*', '?', '[']), plain);
            }
            WordPiece::SingleQuotedText(text) => fields.text(text, false, plain),
            WordPiece::AnsiCQuotedText(text) => fields.text(&ansi_c(text), false, plain),
            WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                // An empty pair of quotes is a field, too; `"$@"` of nothing is none.
                if !matches!(inner.as_slice(), [one] if matches!(one.piece, WordPiece::ParameterExpansion(_)))
                {
                    fields.text("", false, plain);
                }
                self.pieces(inner, true, fields);
            }
            WordPiece::EscapeSequence(text) => {
                let rest = text.strip_prefix('\\').unwrap_or(text);
                fields.text(if rest == "\n" { "" } else { rest }, false, plain);
            }
            WordPiece::TildeExpansion(tilde) => {
                let text = match tilde {
                    TildeExpr::Home => self.places.home.clone(),
                    TildeExpr::UserHome(name) if name == "root" => "/root".to_owned(),
                    TildeExpr::UserHome(name) => format!("/home/{name}"),
                    TildeExpr::WorkingDir => self.cwd.clone(),
                    _ => UNKNOWN.to_string(),
                };
                fields.text(&text, false, plain);
            }
            WordPiece::ParameterExpansion(expression) => {
                let mut values = self.parameter(expression);
                if quoted && concatenates(expression) {
                    values = vec![self.concatenated(&values)];
                }
                let separate = values.len() > 1;
                for (number, value) in values.iter().enumerate() {
                    if number > 0 && separate {
                        fields.close();
                    }
                    match quoted {
                        true => fields.text(&value.text, false, value.taint),
                        false => fields.split(value, &self.separators()),
                    }
                }
            }
            WordPiece::CommandSubstitution(script) => {
                let value = self.substitution(script);
                self.put(&value, quoted, fields);
            }
            WordPiece::BackquotedCommandSubstitution(script) => {
                let value = self.substitution(&script.replace("\\`", "`").replace("\\\\", "\\"));
                self.put(&value, quoted, fields);
            }
            WordPiece::ArithmeticExpression(expression) => {
                self.arithmetic(&expression.value);
                let number = expression.value.trim().parse::<i64>().map(|n| n.to_string());
                fields.text(&number.unwrap_or_else(|_| UNKNOWN.to_string()), false, plain);
            }
        }
    }

    /// Values put together with the first letter of `IFS` between them.
    fn concatenated(&self, values: &[Value]) -> Value {
        let between = match self.vars.get("IFS").and_then(|fields| fields.first()) {
            Some(field) => field.text.chars().next().map(String::from).unwrap_or_default(),
            None => " ".to_owned(),
        };
        let mut out = Value::default();
        for (number, value) in values.iter().enumerate() {
            if number > 0 {
                out.push(&Value::known(between.clone()));
            }
            out.push(value);
        }
        out
    }

    fn put(&mut self, value: &Value, quoted: bool, fields: &mut Fields) {
        match quoted {
            true => fields.text(&value.text, false, value.taint),
            false => fields.split(value, &self.separators()),
        }
    }

    /// What ends a word of an unquoted expansion.
    fn separators(&self) -> Vec<char> {
        match self.vars.get("IFS").and_then(|fields| fields.first()) {
            Some(field) => field.text.chars().take(16).collect(),
            None => vec![' ', '\t', '\n'],
        }
    }

    /// What a command prints, without the line breaks at its end.
    pub(super) fn substitution(&mut self, script: &str) -> Value {
        let (cwd, vars) = (self.cwd.clone(), self.vars.clone());
        let mut out = self.script(script, &Value::default());
        (self.cwd, self.vars) = (cwd, vars);
        out.text.truncate(out.text.trim_end_matches('\n').len());
        out
    }
}

/// Whether an expansion is one word whatever it holds: `"${a[*]}"`, `"$*"`.
fn concatenates(expression: &ParameterExpr) -> bool {
    let ParameterExpr::Parameter { parameter, .. } = expression else { return false };
    matches!(
        parameter,
        Parameter::NamedWithAllIndices { concatenate: true, .. }
            | Parameter::Special(SpecialParameter::AllPositionalParameters { concatenate: true })
    )
}

/// The words that braces come to.
fn braces(text: &str) -> Vec<String> {
    match word::parse_brace_expansions(text, &ParserOptions::default()) {
        Ok(Some(pieces)) => {
            let words = expanded(&pieces);
            if words.is_empty() { vec![text.to_owned()] } else { words }
        }
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
        words = words
            .iter()
            .flat_map(|word| ends.iter().map(move |end| format!("{word}{end}")))
            .take(BRACES_MAX)
            .collect();
    }
    words
}

fn member(member: &BraceExpressionMember) -> Vec<String> {
    match member {
        BraceExpressionMember::NumberSequence { start, end, increment } => {
            sequence(*start, *end, *increment).map(|n| n.to_string()).collect()
        }
        BraceExpressionMember::CharSequence { start, end, increment } => {
            let letters = sequence(i64::from(*start as u32), i64::from(*end as u32), *increment);
            letters.filter_map(|n| char::from_u32(u32::try_from(n).ok()?)).map(String::from).collect()
        }
        BraceExpressionMember::Child(pieces) => expanded(pieces),
    }
}

fn sequence(start: i64, end: i64, step: i64) -> impl Iterator<Item = i64> {
    let step = step.unsigned_abs().clamp(1, 1 << 40) as i64;
    let step = if end < start { -step } else { step };
    let count = (end.saturating_sub(start) / step).unsigned_abs().min(BRACES_MAX as u64) as i64;
    (0..=count).map(move |n| start.saturating_add(n.saturating_mul(step)))
}

/// `$'…'` with its escapes; also what `printf` and `echo -e` make of a text.
pub(super) fn ansi_c(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let push = |c: char, out: &mut Vec<u8>| out.extend(c.encode_utf8(&mut [0; 4]).bytes());
    while let Some(c) = rest.next() {
        if c != '\\' {
            push(c, &mut out);
            continue;
        }
        let Some(kind) = rest.next() else { break };
        let mut digits = |radix: u32, most: usize, first: Option<char>| {
            let mut number: Option<u32> = first.and_then(|c| c.to_digit(radix));
            let mut seen = usize::from(number.is_some());
            while seen < most {
                let Some(digit) = rest.peek().and_then(|c| c.to_digit(radix)) else { break };
                number = Some(number.unwrap_or(0).wrapping_mul(radix).wrapping_add(digit));
                seen += 1;
                rest.next();
            }
            number
        };
        match kind {
            'n' => out.push(b'\n'),
            't' => out.push(b'\t'),
            'r' => out.push(b'\r'),
            'a' => out.push(7),
            'b' => out.push(8),
            'f' => out.push(12),
            'v' => out.push(11),
            'e' | 'E' => out.push(27),
            'x' => out.push(digits(16, 2, None).unwrap_or(0) as u8),
            'u' => push(char::from_u32(digits(16, 4, None).unwrap_or(0)).unwrap_or(UNKNOWN), &mut out),
            'U' => push(char::from_u32(digits(16, 8, None).unwrap_or(0)).unwrap_or(UNKNOWN), &mut out),
            '0'..='7' => out.push(digits(8, if kind == '0' { 4 } else { 3 }, Some(kind)).unwrap_or(0) as u8),
            'c' => drop(rest.next()),
            other => push(other, &mut out),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
