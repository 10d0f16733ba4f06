//! The browser manager for programs that want it without an agent: the same that backs the built-in tools.

use super::browser::{Browsers, PageInput, PageView, Shot};
use super::halt::Halt;
use super::managers::ManagerError;
use ralph_loop_domain::ports::{BrowserInfo, Sandbox};
use std::path::PathBuf;

/// What of a page is to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageShot<'a> {
    /// The window.
    Window,
    /// The whole page.
    FullPage,
    /// One element, by its CSS selector.
    Element(&'a str),
}

/// Something that is done with a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PageAction<'a> {
    /// Clicks the element.
    Click(&'a str),
    /// Puts a text into the field.
    Type(&'a str, &'a str),
    /// Scrolls by so many pixels.
    Scroll(i64),
    /// Moves the mouse over the element.
    Hover(&'a str),
}

/// A page as it is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSight {
    /// Address, title, errors of its console, text.
    pub text: String,
    /// A PNG, in base64.
    pub png_base64: String,
    /// Width and height of the picture in the page.
    pub size: (u32, u32),
}

impl From<PageView> for PageSight {
    fn from(view: PageView) -> Self {
        let (png_base64, width, height) = view.picture;
        Self { text: view.text, png_base64, size: (width, height) }
    }
}

/// Browsers by name: real headless Chromium in the sandbox, errors of the console kept, nothing outlives the manager.
#[derive(Debug, Default)]
pub struct BrowserManager {
    all: Browsers,
}

impl BrowserManager {
    /// Keeps profiles in this folder where the sandbox has none of its own; `/tmp` unless told.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let mut all = Browsers::default();
        all.temp = folder.into();
        Self { all }
    }

    /// Opens an address in the browser of this name, which is started where it is not there.
    pub fn open(&self, sandbox: &dyn Sandbox, name: &str, url: &str) -> Result<PageSight, ManagerError> {
        let seen = self.all.open(name, url, sandbox, &Halt::default());
        seen.map(Into::into).map_err(ManagerError::browser)
    }

    /// A picture of what a browser shows.
    pub fn screenshot(&self, name: &str, shot: PageShot<'_>) -> Result<PageSight, ManagerError> {
        let shot = match shot {
            PageShot::Window => Shot::Window,
            PageShot::FullPage => Shot::FullPage,
            PageShot::Element(selector) => Shot::Element(selector),
        };
        self.all.shoot(name, shot, &Halt::default()).map(Into::into).map_err(ManagerError::browser)
    }

    /// Does something with the page, and looks at what came of it.
    pub fn interact(&self, name: &str, action: PageAction<'_>) -> Result<PageSight, ManagerError> {
        let pixels = if let PageAction::Scroll(pixels) = action { pixels.to_string() } else { String::new() };
        let (action, selector, value) = match action {
            PageAction::Click(selector) => ("click", Some(selector), None),
            PageAction::Type(selector, text) => ("type", Some(selector), Some(text)),
            PageAction::Scroll(_) => ("scroll", None, Some(pixels.as_str())),
            PageAction::Hover(selector) => ("hover", Some(selector), None),
        };
        let input = PageInput { action, selector, value, position: None };
        self.all.touch(name, input, &Halt::default()).map(Into::into).map_err(ManagerError::browser)
    }

    /// Those that are open.
    pub fn list(&self) -> Vec<BrowserInfo> {
        self.all.list()
    }

    /// Closes a browser.
    pub fn close(&self, name: &str) -> Result<(), ManagerError> {
        self.all.close(name).map_err(ManagerError::browser)
    }

    /// Closes them all.
    pub fn close_all(&self) {
        self.all.end_all();
    }
}
