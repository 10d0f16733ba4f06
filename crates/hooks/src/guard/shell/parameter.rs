//! `$x`, `${x:-…}`, `${x//a/b}` and their like.

use super::Shell;
use crate::guard::value::{Field, Taint, UNKNOWN, Value};
use crate::guard::wild;
use brush_parser::word::{Parameter, ParameterExpr as Expr, SpecialParameter, SubstringMatchKind};
use ralph_loop_domain::secret_name::is_secret_name;

impl Shell<'_> {
    /// What a parameter comes to: one text, or several for `$@` and whole arrays.
    pub(super) fn parameter(&mut self, expression: &Expr) -> Vec<Value> {
        match expression {
            Expr::Parameter { parameter, indirect } => self.looked_up(parameter, *indirect),
            Expr::UseDefaultValues { parameter, indirect, default_value, .. } => {
                self.or_else(parameter, *indirect, default_value.as_deref())
            }
            Expr::AssignDefaultValues { parameter, indirect, default_value, .. } => {
                let values = self.or_else(parameter, *indirect, default_value.as_deref());
                if let Parameter::Named(name) = parameter {
                    self.vars.insert(name.clone(), values.iter().cloned().map(Field::from).collect());
                }
                values
            }
            Expr::UseAlternativeValue { alternative_value, .. } => {
                vec![self.inner_text(alternative_value.as_deref().unwrap_or_default())]
            }
            Expr::IndicateErrorIfNullOrUnset { parameter, indirect, .. } => {
                self.looked_up(parameter, *indirect).into_iter().map(is_set).collect()
            }
            Expr::ParameterLength { parameter, indirect } => {
                let value = self.one(parameter, *indirect);
                vec![if value.is_known() { number(value.text.chars().count()) } else { unknown() }]
            }
            Expr::RemoveSmallestSuffixPattern { parameter, indirect, pattern } => {
                self.changed(parameter, *indirect, pattern.as_deref(), |text, p| cut_end(text, p, false))
            }
            Expr::RemoveLargestSuffixPattern { parameter, indirect, pattern } => {
                self.changed(parameter, *indirect, pattern.as_deref(), |text, p| cut_end(text, p, true))
            }
            Expr::RemoveSmallestPrefixPattern { parameter, indirect, pattern } => {
                self.changed(parameter, *indirect, pattern.as_deref(), |text, p| cut_start(text, p, false))
            }
            Expr::RemoveLargestPrefixPattern { parameter, indirect, pattern } => {
                self.changed(parameter, *indirect, pattern.as_deref(), |text, p| cut_start(text, p, true))
            }
            Expr::Substring { parameter, indirect, offset, length } => {
                let length = length.as_ref().map(|l| l.value.as_str());
                self.arithmetic(&offset.value);
                self.arithmetic(length.unwrap_or_default());
                self.substring(parameter, *indirect, &offset.value, length)
            }
            Expr::ReplaceSubstring { parameter, indirect, pattern, replacement, match_kind } => {
                let to = self.inner_text(replacement.as_deref().unwrap_or_default()).text;
                self.changed(parameter, *indirect, Some(pattern), |text, p| {
                    replaced(text, p, &to, match_kind)
                })
            }
            Expr::UppercasePattern { parameter, indirect, .. } => {
                self.changed(parameter, *indirect, None, |text, _| text.to_uppercase())
            }
            Expr::LowercasePattern { parameter, indirect, .. } => {
                self.changed(parameter, *indirect, None, |text, _| text.to_lowercase())
            }
            Expr::UppercaseFirstChar { parameter, indirect, .. } => {
                self.changed(parameter, *indirect, None, |text, _| {
                    first_changed(text, char::to_ascii_uppercase)
                })
            }
            Expr::LowercaseFirstChar { parameter, indirect, .. } => {
                self.changed(parameter, *indirect, None, |text, _| {
                    first_changed(text, char::to_ascii_lowercase)
                })
            }
            Expr::Transform { parameter, indirect, .. } => {
                let values = self.looked_up(parameter, *indirect);
                // `${x@P}` expands once more.
                values.iter().for_each(|value| self.prompt(&value.text));
                values
            }
            _ => vec![unknown()],
        }
    }

    fn looked_up(&mut self, parameter: &Parameter, indirect: bool) -> Vec<Value> {
        if let Parameter::NamedWithIndex { index, .. } = parameter {
            self.arithmetic(index);
        }
        if indirect {
            let name = self.direct(parameter).into_iter().next().unwrap_or_default().text;
            return self.direct(&Parameter::Named(name));
        }
        self.direct(parameter)
    }

    fn direct(&self, parameter: &Parameter) -> Vec<Value> {
        let values = |fields: &[Field]| fields.iter().map(Field::value).collect::<Vec<_>>();
        match parameter {
            Parameter::Named(name) => vec![self.variable(name)],
            Parameter::NamedWithIndex { name, index } => {
                let known = self.vars.get(name).zip(index.trim().parse::<usize>().ok());
                vec![known.and_then(|(list, at)| list.get(at)).map_or_else(unknown, Field::value)]
            }
            Parameter::NamedWithAllIndices { name, .. } => match self.vars.get(name) {
                Some(list) => values(list),
                None => vec![unknown()],
            },
            Parameter::Positional(0) => vec![self.zero.value()],
            Parameter::Positional(number) => match &self.positional {
                Some(list) => {
                    let at = list.get(*number as usize - 1);
                    vec![at.map(Field::value).unwrap_or_default()]
                }
                None => vec![unknown()],
            },
            Parameter::Special(special) => match (special, &self.positional) {
                (SpecialParameter::AllPositionalParameters { .. }, Some(list)) => values(list),
                (SpecialParameter::PositionalParameterCount, Some(list)) => vec![number(list.len())],
                (SpecialParameter::LastExitStatus, _) => vec![Value::known("0")],
                (SpecialParameter::ShellName, _) => vec![self.zero.value()],
                _ => vec![unknown()],
            },
        }
    }

    /// What is known of a variable.
    fn variable(&self, name: &str) -> Value {
        if let Some(fields) = self.vars.get(name) {
            return is_set(fields.first().map(Field::value).unwrap_or_default());
        }
        match name {
            "HOME" => Value::known(self.places.home.clone()),
            "PWD" => Value::known(self.cwd.clone()),
            "IFS" => Value::known(" \t\n"),
            "SHELL" | "BASH" => Value::known("/bin/bash"),
            "TMPDIR" => Value::known("/tmp"),
            // Whoever started this: the session itself, which `kill` calls 0 as well.
            "PPID" => Value::known("0"),
            _ => Value::unknown(Taint { secret: is_secret_name(name), unset: true, ..Taint::default() }),
        }
    }

    fn one(&mut self, parameter: &Parameter, indirect: bool) -> Value {
        self.looked_up(parameter, indirect).into_iter().next().unwrap_or_default()
    }

    /// The value, or its default where nobody has set it here.
    fn or_else(&mut self, parameter: &Parameter, indirect: bool, default: Option<&str>) -> Vec<Value> {
        let values = self.looked_up(parameter, indirect);
        let set = values.iter().any(|value| !value.text.is_empty() && value.is_known());
        if set {
            return values;
        }
        let mut value = self.inner_text(default.unwrap_or_default());
        // The variable may be set after all, to a secret.
        value.taint = values.iter().fold(value.taint, |taint, value| taint.and(value.taint));
        vec![value]
    }

    fn changed(
        &mut self,
        parameter: &Parameter,
        indirect: bool,
        pattern: Option<&str>,
        change: impl Fn(&str, &str) -> String,
    ) -> Vec<Value> {
        let pattern = self.inner_text(pattern.unwrap_or_default()).text;
        let change = |value: Value| match value.is_known() {
            true => Value { text: change(&value.text, &pattern), taint: value.taint },
            false => value,
        };
        self.looked_up(parameter, indirect).into_iter().map(change).collect()
    }

    fn substring(
        &mut self,
        parameter: &Parameter,
        indirect: bool,
        offset: &str,
        length: Option<&str>,
    ) -> Vec<Value> {
        let values = self.looked_up(parameter, indirect);
        let numbers = (offset.trim().parse::<i64>(), length.map(|l| l.trim().parse::<i64>()).transpose());
        let (Ok(offset), Ok(length)) = numbers else { return vec![unknown()] };
        let cut = |value: &Value| {
            let letters: Vec<char> = value.text.chars().collect();
            let count = letters.len() as i64;
            let from = if offset < 0 { count + offset } else { offset }.clamp(0, count);
            let to = match length {
                Some(length) if length < 0 => count + length,
                Some(length) => from.saturating_add(length),
                None => count,
            };
            let to = to.clamp(from, count);
            Value { text: letters[from as usize..to as usize].iter().collect(), taint: value.taint }
        };
        match values.as_slice() {
            [one] if one.is_known() => vec![cut(one)],
            [one] => vec![one.clone()],
            // `"${a[@]:1}"` leaves out the first ones.
            many => many.iter().skip(offset.max(0) as usize).cloned().collect(),
        }
    }
}

/// A text that is there, whatever it is made of.
fn is_set(mut value: Value) -> Value {
    value.taint.unset = false;
    value
}

fn unknown() -> Value {
    Value { text: UNKNOWN.to_string(), taint: Taint::default() }
}

fn number(count: usize) -> Value {
    Value::known(count.to_string())
}

fn first_changed(text: &str, change: impl Fn(&char) -> char) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| change(&first)).into_iter().chain(letters).collect()
}

/// Places between characters, the start and the end included.
fn places(text: &str) -> impl DoubleEndedIterator<Item = usize> {
    let mut places: Vec<usize> = text.char_indices().map(|(at, _)| at).take(512).collect();
    places.push(text.len());
    places.into_iter()
}

fn cut_start(text: &str, pattern: &str, largest: bool) -> String {
    let fits = |at: &usize| wild::matches(pattern, &text[..*at]);
    let found = if largest { places(text).rev().find(fits) } else { places(text).find(fits) };
    text[found.unwrap_or(0)..].to_owned()
}

fn cut_end(text: &str, pattern: &str, largest: bool) -> String {
    let fits = |at: &usize| wild::matches(pattern, &text[*at..]);
    let found = if largest { places(text).find(fits) } else { places(text).rev().find(fits) };
    text[..found.unwrap_or(text.len())].to_owned()
}

fn replaced(text: &str, pattern: &str, to: &str, kind: &SubstringMatchKind) -> String {
    if pattern.is_empty() {
        return text.to_owned();
    }
    if !pattern.contains(['*', '?', '[', '\\']) {
        return match kind {
            SubstringMatchKind::Anywhere => text.replace(pattern, to),
            SubstringMatchKind::FirstOccurrence => text.replacen(pattern, to, 1),
            SubstringMatchKind::Prefix => text
                .strip_prefix(pattern)
                .map(|rest| format!("{to}{rest}"))
                .unwrap_or_else(|| text.to_owned()),
            SubstringMatchKind::Suffix => text
                .strip_suffix(pattern)
                .map(|rest| format!("{rest}{to}"))
                .unwrap_or_else(|| text.to_owned()),
        };
    }
    // A pattern of one character, such as `[^a-z]`: the others are too many to be worth it.
    let mut done = false;
    let turn = |c: char| {
        let fits = wild::matches(pattern, c.encode_utf8(&mut [0; 4]));
        let take = fits && (!done || matches!(kind, SubstringMatchKind::Anywhere));
        done |= fits;
        if take { to.to_owned() } else { c.to_string() }
    };
    text.chars().map(turn).collect()
}
