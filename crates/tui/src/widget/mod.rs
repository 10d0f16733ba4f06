//! Drawing and editing, for every screen.

pub(crate) mod draw;
pub(crate) mod editor;
pub(crate) mod form;
pub(crate) mod overlay;
pub(crate) mod text;
pub(crate) mod theme;
