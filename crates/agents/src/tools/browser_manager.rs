//! The browser manager for programs without an agent; the built-in tools use the same one.

use super::browser::{Browsers, PageInput, PageView, Shot};
use super::halt::Halt;
use super::managers::ManagerError;
use ralph_loop_domain::ports::{BrowserInfo, Sandbox};
use std::path::PathBuf;

/// What to show of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageShot<'a> {
    Window,
    FullPage,
    Element(&'a str),
}

/// An interaction with a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PageAction<'a> {
    Click(&'a str),
    /// Types text into the field.
    Type(&'a str, &'a str),
    Scroll(i64),
    Hover(&'a str),
}

/// A page's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSight {
    pub text: String,
    pub png_base64: String,
    /// The picture's size in the page.
    pub size: (u32, u32),
}

impl From<PageView> for PageSight {
    fn from(view: PageView) -> Self {
        let (png_base64, width, height) = view.picture;
        Self { text: view.text, png_base64, size: (width, height) }
    }
}

/// Browsers by name: real headless Chromium in the sandbox, with console errors; nothing outlives the manager.
#[derive(Debug, Default)]
pub struct BrowserManager {
    all: Browsers,
}

impl BrowserManager {
    /// Keeps profiles in this folder if the sandbox has none; default: `/tmp`.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let mut all = Browsers::default();
        all.temp = folder.into();
        Self { all }
    }

    /// Opens a URL in the browser of this name, starting it if needed.
    pub fn open(&self, sandbox: &dyn Sandbox, name: &str, url: &str) -> Result<PageSight, ManagerError> {
        let seen = self.all.open(name, url, sandbox, &Halt::default());
        seen.map(Into::into).map_err(ManagerError::browser)
    }

    pub fn screenshot(&self, name: &str, shot: PageShot<'_>) -> Result<PageSight, ManagerError> {
        let shot = match shot {
            PageShot::Window => Shot::Window,
            PageShot::FullPage => Shot::FullPage,
            PageShot::Element(selector) => Shot::Element(selector),
        };
        self.all.shoot(name, shot, &Halt::default()).map(Into::into).map_err(ManagerError::browser)
    }

    /// Performs an interaction and returns the resulting page.
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

    pub fn list(&self) -> Vec<BrowserInfo> {
        self.all.list()
    }

    pub fn close(&self, name: &str) -> Result<(), ManagerError> {
        self.all.close(name).map_err(ManagerError::browser)
    }

    pub fn close_all(&self) {
        self.all.end_all();
    }
}
