//! A form of a few fields with defaults: text or a choice.

use crate::widget::editor::Editor;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(Editor),
    /// One of these.
    Choice(Vec<String>, usize),
    /// Read-only.
    Fixed(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Identifier.
    pub key: &'static str,
    /// Display name.
    pub label: &'static str,
    pub value: Value,
    /// Help text.
    pub hint: String,
}

impl Field {
    /// A text field.
    pub fn text(key: &'static str, label: &'static str, value: &str, hint: &str) -> Self {
        Self { key, label, value: Value::Text(Editor::with(value)), hint: hint.to_owned() }
    }

    pub fn choice(key: &'static str, label: &'static str, of: &[&str], chosen: usize, hint: &str) -> Self {
        let of = of.iter().map(|word| (*word).to_owned()).collect();
        Self { key, label, value: Value::Choice(of, chosen), hint: hint.to_owned() }
    }

    /// A read-only field.
    pub fn fixed(key: &'static str, label: &'static str, value: &str, hint: &str) -> Self {
        Self { key, label, value: Value::Fixed(value.to_owned()), hint: hint.to_owned() }
    }

    pub fn shown(&self) -> String {
        match &self.value {
            Value::Text(editor) => editor.text().replace('\n', " "),
            Value::Choice(of, at) => of.get(*at).cloned().unwrap_or_default(),
            Value::Fixed(text) => text.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Form {
    pub fields: Vec<Field>,
    pub at: usize,
}

impl Form {
    pub fn new(fields: Vec<Field>) -> Self {
        Self { fields, at: 0 }
    }

    /// A field's value, trimmed.
    pub fn get(&self, key: &str) -> String {
        let field = self.fields.iter().find(|field| field.key == key);
        field.map_or_else(String::new, |field| field.shown().trim().to_owned())
    }

    pub fn set(&mut self, key: &str, text: &str) {
        if let Some(Value::Text(editor)) =
            self.fields.iter_mut().find(|field| field.key == key).map(|field| &mut field.value)
        {
            editor.set(text);
        }
    }

    /// Moves to the next or previous editable field.
    pub fn step(&mut self, forward: bool) {
        let count = self.fields.len().max(1);
        for _ in 0..count {
            self.at = if forward { (self.at + 1) % count } else { (self.at + count - 1) % count };
            if !matches!(self.fields.get(self.at).map(|field| &field.value), Some(Value::Fixed(_))) {
                break;
            }
        }
    }

    /// Moves to the next or previous choice of the field.
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

    /// The active text field.
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
