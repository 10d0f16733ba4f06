//! Browsers by name: real headless Chromium, one process each, started in the sandbox and ended with the run.

mod folder;
mod input;
mod launch;
mod page;
mod shot;
mod wire;

pub(crate) use input::PageInput;
pub(crate) use shot::Shot;

use crate::tools::halt::Halt;
use page::Page;
use ralph_loop_domain::ports::{BrowserInfo, Sandbox};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::DevTools;

/// The default browser.
pub(crate) const MAIN: &str = "main";
/// Most open browsers; each takes some hundred megabytes.
const MOST: usize = 3;

/// How often a page is read after an action before its failure is reported.
const TRIES: u32 = 5;

#[derive(Debug)]
pub(crate) struct Browsers {
    all: Mutex<BTreeMap<String, Page>>,
    /// Where profiles are kept, if the sandbox has no folder for that.
    pub(crate) temp: PathBuf,
    /// The URL that each was last opened on: known without waiting for a page.
    addresses: Mutex<BTreeMap<String, String>>,
}

impl Default for Browsers {
    fn default() -> Self {
        Self { all: Mutex::default(), temp: PathBuf::from("/tmp"), addresses: Mutex::default() }
    }
}

#[derive(Debug)]
pub(crate) struct PageView {
    /// URL, title, errors and text.
    pub(crate) text: String,
    /// The picture in base64, and its size in the page.
    pub(crate) picture: (String, u32, u32),
}

impl Browsers {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Page>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens `url` in the browser `name`, starting it if needed.
    pub(crate) fn open(
        &self,
        name: &str,
        url: &str,
        sandbox: &dyn Sandbox,
        halt: &Halt,
    ) -> Result<PageView, String> {
        let mut all = self.all();
        if all.get(name).is_some_and(|page| !page.wire.alive()) {
            all.remove(name);
        }
        if !all.contains_key(name) {
            if all.len() >= MOST {
                let names: Vec<&str> = all.keys().map(String::as_str).collect();
                return Err(format!(
                    "{MOST} browsers are open already ({}); close one first",
                    names.join(", ")
                ));
            }
            let page = Page::take(DevTools::new(launch::launch(sandbox, &self.temp)?), halt)?;
            all.insert(name.to_owned(), page);
        }
        let page = all.get_mut(name).ok_or("the browser is gone")?;
        self.addresses().insert(name.to_owned(), url.to_owned());
        page.open(url, halt)?;
        page_view(page, Shot::Window, halt)
    }

    fn addresses(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open browsers and their URLs.
    pub(crate) fn list(&self) -> Vec<BrowserInfo> {
        let open = self.addresses();
        open.iter().map(|(name, url)| BrowserInfo { name: name.clone(), url: url.clone() }).collect()
    }

    pub(crate) fn shoot(&self, name: &str, shot: Shot<'_>, halt: &Halt) -> Result<PageView, String> {
        self.with(name, |page| page_view(page, shot, halt))
    }

    /// Performs an interaction and returns the resulting page.
    pub(crate) fn touch(&self, name: &str, touch: PageInput<'_>, halt: &Halt) -> Result<PageView, String> {
        self.with(name, |page| {
            input::touch(page, touch, halt)?;
            let mut tries = 0;
            loop {
                tries += 1;
                page.after_action(halt)?;
                match page_view(page, Shot::Window, halt) {
                    // The page went away: the action navigated to another one.
                    Err(_) if tries < TRIES && halt.get().is_none() && page.wire.alive() => {}
                    seen => return seen,
                }
            }
        })
    }

    fn with<T>(&self, name: &str, act: impl FnOnce(&mut Page) -> Result<T, String>) -> Result<T, String> {
        let mut all = self.all();
        let Some(page) = all.get_mut(name) else { return Err(not_open(name, &all)) };
        let done = act(page);
        if done.is_err() && !page.wire.alive() {
            all.remove(name);
            self.addresses().remove(name);
        }
        done
    }

    pub(crate) fn close(&self, name: &str) -> Result<(), String> {
        let mut all = self.all();
        let Some(page) = all.remove(name) else { return Err(not_open(name, &all)) };
        self.addresses().remove(name);
        drop(all);
        page.wire.close();
        Ok(())
    }

    pub(crate) fn end_all(&self) {
        let all = std::mem::take(&mut *self.all());
        self.addresses().clear();
        for page in all.into_values() {
            page.wire.close();
        }
    }
}

impl Drop for Browsers {
    fn drop(&mut self) {
        self.end_all();
    }
}

fn page_view(page: &mut Page, shot: Shot<'_>, halt: &Halt) -> Result<PageView, String> {
    let picture = shot::take(page, shot, halt)?;
    Ok(PageView { text: page.describe(halt)?, picture })
}

fn not_open(name: &str, all: &BTreeMap<String, Page>) -> String {
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    match names.is_empty() {
        true => format!("no browser `{name}` is open; openBrowser opens one"),
        false => format!("no browser `{name}` is open; there are: {}", names.join(", ")),
    }
}
