//! Page interactions: click, type, press, scroll, hover, wait.

use super::page::Page;
use crate::tools::halt::Halt;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const WAIT_MAX: Duration = Duration::from_secs(30);
/// Default time limit for an element.
const WAIT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(100);

/// A page interaction and its target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageInput<'a> {
    pub(crate) action: &'a str,
    pub(crate) selector: Option<&'a str>,
    pub(crate) value: Option<&'a str>,
    pub(crate) position: Option<(f64, f64)>,
}

/// The message for a missing element.
pub(super) fn no_such(selector: &str) -> String {
    format!("no element matches `{selector}`; use a CSS selector; the page text lists the elements")
}

pub(super) fn touch(page: &mut Page, touch: PageInput<'_>, halt: &Halt) -> Result<(), String> {
    match touch.action {
        "click" => {
            let point = point(page, touch, halt)?;
            click(page, point, halt)
        }
        "hover" => {
            let point = point(page, touch, halt)?;
            mouse(page, "mouseMoved", point, json!({}), halt)
        }
        "type" => type_text(page, touch, halt),
        "press" => press(page, touch, halt),
        "scroll" => scroll(page, touch, halt),
        "wait" => wait(page, touch, halt),
        other => Err(format!("there is no action `{other}`")),
    }
}

/// The middle of the element, scrolled into view; or the given position.
fn point(page: &mut Page, touch: PageInput<'_>, halt: &Halt) -> Result<(f64, f64), String> {
    let selector = match (touch.selector, touch.position) {
        (Some(selector), _) => selector,
        (None, Some(position)) => return Ok(position),
        (None, None) => return Err(format!("`{}` needs a `selector` or a `position`", touch.action)),
    };
    let script = format!(
        "(() => {{ const e = document.querySelector({}); if (!e) return null; \
         e.scrollIntoView({{block: 'center', inline: 'center', behavior: 'instant'}}); \
         const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2, r.width, r.height]; }})()",
        json!(selector)
    );
    let found = page.evaluate(&script, halt)?;
    let at = |index: usize| found.get(index).and_then(Value::as_f64);
    match (at(0), at(1), at(2), at(3)) {
        (Some(x), Some(y), Some(width), Some(height)) if width > 0.0 && height > 0.0 => Ok((x, y)),
        (Some(_), ..) => Err(format!("`{selector}` is there, but it has no size and cannot be reached")),
        _ => Err(no_such(selector)),
    }
}

fn click(page: &mut Page, point: (f64, f64), halt: &Halt) -> Result<(), String> {
    mouse(page, "mouseMoved", point, json!({}), halt)?;
    let button = json!({ "button": "left", "clickCount": 1 });
    mouse(page, "mousePressed", point, button.clone(), halt)?;
    mouse(page, "mouseReleased", point, button, halt)
}

fn mouse(page: &mut Page, kind: &str, point: (f64, f64), more: Value, halt: &Halt) -> Result<(), String> {
    let mut event = json!({ "type": kind, "x": point.0, "y": point.1 });
    for (name, value) in more.as_object().into_iter().flatten() {
        event[name] = value.clone();
    }
    page.wire.call("Input.dispatchMouseEvent", event, halt).map(|_| ())
}

/// Types into the element, replacing its content; without a selector, at the cursor.
fn type_text(page: &mut Page, touch: PageInput<'_>, halt: &Halt) -> Result<(), String> {
    let value = touch.value.ok_or("`type` needs a `value`: the text to type")?;
    if let Some(selector) = touch.selector
        && choose(page, selector, value, halt)?
    {
        return Ok(());
    }
    if touch.selector.is_some() || touch.position.is_some() {
        let point = point(page, touch, halt)?;
        click(page, point, halt)?;
    }
    if let Some(selector) = touch.selector {
        let script = format!(
            "(() => {{ const e = document.querySelector({}); if (!e) return; e.focus(); \
             if (e.select) e.select(); else if (e.isContentEditable) getSelection().selectAllChildren(e); }})()",
            json!(selector)
        );
        page.evaluate(&script, halt)?;
    }
    if value.is_empty() {
        return key(page, "Delete", halt);
    }
    page.wire.call("Input.insertText", json!({ "text": value }), halt).map(|_| ())
}

/// Selects the option with this value or text; returns whether the element was a select.
fn choose(page: &mut Page, selector: &str, value: &str, halt: &Halt) -> Result<bool, String> {
    let script = format!(
        "(() => {{ const e = document.querySelector({}); if (!e || e.tagName !== 'SELECT') return null; \
         const all = [...e.options]; const o = all.find(o => o.value === {value} || o.text.trim() === {value}); \
         if (!o) return all.map(o => o.text.trim()); e.value = o.value; \
         for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind, {{bubbles: true}})); return true; }})()",
        json!(selector),
        value = json!(value)
    );
    match page.evaluate(&script, halt)? {
        Value::Bool(true) => Ok(true),
        Value::Array(choices) => {
            let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).take(30).collect();
            Err(format!("`{selector}` has no choice `{value}`; there are: {}", choices.join(", ")))
        }
        _ => Ok(false),
    }
}

fn press(page: &mut Page, touch: PageInput<'_>, halt: &Halt) -> Result<(), String> {
    let value = touch
        .value
        .ok_or("`press` needs a `value`: a key like Enter, Tab, Escape, ArrowDown or a character")?;
    if let Some(selector) = touch.selector {
        let script = format!(
            "(() => {{ const e = document.querySelector({}); if (!e) return false; e.focus(); return true; }})()",
            json!(selector)
        );
        if page.evaluate(&script, halt)? != json!(true) {
            return Err(no_such(selector));
        }
    }
    key(page, value, halt)
}

fn key(page: &mut Page, name: &str, halt: &Halt) -> Result<(), String> {
    let (code, text) = match name {
        "Enter" => (13, "\r"),
        "Tab" => (9, ""),
        "Escape" => (27, ""),
        "Backspace" => (8, ""),
        "Delete" => (46, ""),
        "Space" | " " => (32, " "),
        "ArrowLeft" => (37, ""),
        "ArrowUp" => (38, ""),
        "ArrowRight" => (39, ""),
        "ArrowDown" => (40, ""),
        "PageUp" => (33, ""),
        "PageDown" => (34, ""),
        "End" => (35, ""),
        "Home" => (36, ""),
        one if one.chars().count() == 1 => (0, one),
        other => {
            return Err(format!(
                "there is no key `{other}`; keys are Enter, Tab, Escape, Backspace, Delete, Space, ArrowUp, ArrowDown, ArrowLeft, ArrowRight, PageUp, PageDown, Home, End or one character"
            ));
        }
    };
    let name = if name == "Space" { " " } else { name };
    let mut down = json!({ "type": if text.is_empty() { "rawKeyDown" } else { "keyDown" }, "key": name, "windowsVirtualKeyCode": code });
    if name.chars().count() > 1 {
        down["code"] = json!(name);
    }
    if !text.is_empty() {
        down["text"] = json!(text);
    }
    page.wire.call("Input.dispatchKeyEvent", down.clone(), halt)?;
    down["type"] = json!("keyUp");
    page.wire.call("Input.dispatchKeyEvent", down, halt).map(|_| ())
}

/// Scrolls by pixels, the page or an element; without a number, until the element is in view.
fn scroll(page: &mut Page, touch: PageInput<'_>, halt: &Halt) -> Result<(), String> {
    let pixels: Option<f64> = match touch.value {
        None => None,
        Some(value) => Some(
            value
                .trim()
                .trim_end_matches("px")
                .parse()
                .map_err(|_| format!("`value` must be pixels, not `{value}`"))?,
        ),
    };
    let script = match (touch.selector, pixels) {
        (None, pixels) => format!("scrollBy(0, {}); true", pixels.unwrap_or(600.0)),
        (Some(selector), None) => format!(
            "(() => {{ const e = document.querySelector({}); if (e) e.scrollIntoView({{block: 'center', behavior: 'instant'}}); return !!e; }})()",
            json!(selector)
        ),
        (Some(selector), Some(pixels)) => format!(
            "(() => {{ const e = document.querySelector({}); if (e) e.scrollBy(0, {pixels}); return !!e; }})()",
            json!(selector)
        ),
    };
    match (page.evaluate(&script, halt)?, touch.selector) {
        (Value::Bool(false), Some(selector)) => Err(no_such(selector)),
        _ => Ok(()),
    }
}

/// Waits for an element, or for some milliseconds.
fn wait(page: &mut Page, touch: PageInput<'_>, halt: &Halt) -> Result<(), String> {
    let length = match touch.value {
        None => None,
        Some(value) => {
            let number: u64 = value
                .trim()
                .trim_end_matches("ms")
                .trim()
                .parse()
                .map_err(|_| format!("`value` must be milliseconds, not `{value}`"))?;
            Some(Duration::from_millis(number).min(WAIT_MAX))
        }
    };
    let begun = Instant::now();
    let Some(selector) = touch.selector else {
        let length = length.ok_or("`wait` needs a `selector`, or a `value` in milliseconds")?;
        page.wait_until(begun + length, halt, |_| false)?;
        return Ok(());
    };
    let until = begun + length.unwrap_or(WAIT);
    let script = format!("!!document.querySelector({})", json!(selector));
    loop {
        if page.evaluate(&script, halt)? == json!(true) {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(no_such(selector));
        }
        page.wait_until(until.min(Instant::now() + LOOK), halt, |_| false)?;
    }
}
