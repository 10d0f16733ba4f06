//! Screenshots of a page, as PNG, small enough for every provider.

use super::page::{HEIGHT, Page, WIDTH, text_of};
use crate::tools::halt::Halt;
use serde_json::{Value, json};

/// Longest side; providers refuse more.
const SIDE_MAX: f64 = 7900.0;
const SIZE_MAX: usize = 4 * 1024 * 1024;
/// A picture that is still too large at this scale isn't sent.
const SCALE_MIN: f64 = 0.1;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Shot<'a> {
    Window,
    FullPage,
    Element(&'a str),
}

/// A picture in base64, and its size in the page.
pub(super) fn take(page: &mut Page, shot: Shot<'_>, halt: &Halt) -> Result<(String, u32, u32), String> {
    let (x, y, width, height) = match shot {
        Shot::Window => return capture(page, None, (f64::from(WIDTH), f64::from(HEIGHT)), halt),
        Shot::FullPage => {
            let sizes = page.wire.call("Page.getLayoutMetrics", json!({}), halt)?;
            let side = |name: &str| sizes.pointer(&format!("/cssContentSize/{name}")).and_then(Value::as_f64);
            let least = |side: Option<f64>, least: u32| side.unwrap_or(0.0).max(f64::from(least));
            (0.0, 0.0, least(side("width"), WIDTH), least(side("height"), HEIGHT))
        }
        Shot::Element(selector) => element(page, selector, halt)?,
    };
    let (width, height) = (width.min(SIDE_MAX), height.min(SIDE_MAX));
    capture(page, Some((x, y)), (width, height), halt)
}

/// Position and size of an element, in whole pixels.
fn element(page: &mut Page, selector: &str, halt: &Halt) -> Result<(f64, f64, f64, f64), String> {
    let script = format!(
        "(() => {{ const e = document.querySelector({}); if (!e) return null; e.scrollIntoView({{block: 'nearest'}}); \
         const r = e.getBoundingClientRect(); return [r.left + scrollX, r.top + scrollY, r.width, r.height]; }})()",
        json!(selector)
    );
    let found = page.evaluate(&script, halt)?;
    let at = |index: usize| found.get(index).and_then(Value::as_f64);
    let (Some(x), Some(y), Some(width), Some(height)) = (at(0), at(1), at(2), at(3)) else {
        return Err(super::input::no_such(selector));
    };
    if width < 1.0 || height < 1.0 {
        return Err(format!("`{selector}` is there, but it has no size and cannot be seen"));
    }
    Ok((x.floor(), y.floor(), width.round(), height.round()))
}

fn capture(
    page: &mut Page,
    from: Option<(f64, f64)>,
    size: (f64, f64),
    halt: &Halt,
) -> Result<(String, u32, u32), String> {
    let mut scale = 1.0;
    loop {
        let mut asked = json!({ "format": "png" });
        if from.is_some() || scale < 1.0 {
            let (x, y) = from.unwrap_or_default();
            asked["clip"] = json!({ "x": x, "y": y, "width": size.0, "height": size.1, "scale": scale });
            asked["captureBeyondViewport"] = json!(from.is_some());
        }
        let picture = text_of(&page.wire.call("Page.captureScreenshot", asked, halt)?, "/data");
        if picture.is_empty() {
            return Err("the browser gave no picture".to_owned());
        }
        if picture.len() <= SIZE_MAX {
            return Ok((picture, size.0 as u32, size.1 as u32));
        }
        scale /= 2.0;
        if scale < SCALE_MIN {
            return Err("the picture is too large; take one of an element".to_owned());
        }
    }
}
