//! A few fields with defaults: text that is typed, or one of some choices.

use crate::editor::Editor;

/// What a field holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Anything.
    Text(Editor),
    /// One of these.
    Choice(Vec<String>, usize),
    /// Only shown.
    Fixed(String),
}

/// One field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name for the code.
    pub key: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// What it holds.
    pub value: Value,
    /// What to know about it.
    pub hint: String,
}

impl Field {
    /// A text.
    pub fn text(key: &'static str, label: &'static str, value: &str, hint: &str) -> Self {
        Self { key, label, value: Value::Text(Editor::with(value)), hint: hint.to_owned() }
    }

    /// One of some words.
    pub fn choice(key: &'static str, label: &'static str, of: &[&str], chosen: usize, hint: &str) -> Self {
        let of = of.iter().map(|word| (*word).to_owned()).collect();
        Self { key, label, value: Value::Choice(of, chosen), hint: hint.to_owned() }
    }

    /// Only shown.
    pub fn fixed(key: &'static str, label: &'static str, value: &str, hint: &str) -> Self {
        Self { key, label, value: Value::Fixed(value.to_owned()), hint: hint.to_owned() }
    }

    /// What it says.
    pub fn shown(&self) -> String {
        match &self.value {
            Value::Text(editor) => editor.text().replace('\n', " "),
            Value::Choice(of, at) => of.get(*at).cloned().unwrap_or_default(),
            Value::Fixed(text) => text.clone(),
        }
    }
}

/// The fields, and the one that keys act on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Form {
    /// All of them.
    pub fields: Vec<Field>,
    /// The chosen one.
    pub at: usize,
}

impl Form {
    /// These.
    pub fn new(fields: Vec<Field>) -> Self {
        Self { fields, at: 0 }
    }

    /// What a field says, without spaces around.
    pub fn get(&self, key: &str) -> String {
        let field = self.fields.iter().find(|field| field.key == key);
        field.map_or_else(String::new, |field| field.shown().trim().to_owned())
    }

    /// Gives a text field another text.
    pub fn set(&mut self, key: &str, text: &str) {
        if let Some(Value::Text(editor)) =
            self.fields.iter_mut().find(|field| field.key == key).map(|field| &mut field.value)
        {
            editor.set(text);
        }
    }

    /// The next field that can be changed, or the one before.
    pub fn step(&mut self, forward: bool) {
        let count = self.fields.len().max(1);
        for _ in 0..count {
            self.at = if forward { (self.at + 1) % count } else { (self.at + count - 1) % count };
            if !matches!(self.fields.get(self.at).map(|field| &field.value), Some(Value::Fixed(_))) {
                break;
            }
        }
    }

    /// The next choice of the chosen field, or the one before.
    pub fn turn(&mut self, forward: bool) -> bool {
        match self.fields.get_mut(self.at).map(|field| &mut field.value) {
            Some(Value::Choice(of, at)) => {
                let count = of.len().max(1);
                *at = if forward { (*at + 1) % count } else { (*at + count - 1) % count };
                true
            }
            _ => false,
        }
    }

    /// The text that is typed into.
    pub fn editor(&mut self) -> Option<&mut Editor> {
        match self.fields.get_mut(self.at).map(|field| &mut field.value) {
            Some(Value::Text(editor)) => Some(editor),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_stepped_through_and_choices_turned() {
        let mut form = Form::new(vec![
            Field::text("a", "A", "one", ""),
            Field::fixed("b", "B", "x", ""),
            Field::choice("c", "C", &["yes", "no"], 0, ""),
        ]);
        assert!(!form.turn(true));
        form.editor().unwrap().insert("!");
        form.step(true);
        assert_eq!((form.at, form.get("a").as_str()), (2, "one!"));
        assert!(form.turn(true) && form.get("c") == "no" && form.editor().is_none());
        form.step(true);
        assert_eq!(form.at, 0);
    }
}
