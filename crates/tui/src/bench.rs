//! Benchmark entry point: the model and its frames, without a terminal.

use crate::data::Screen;
use crate::log::Kind;
use crate::model::Model;
use crate::msg::{Live, Msg};
use crate::update::update;
use crate::view::view;
use crate::widget::theme::Theme;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

/// A run with many lines of output on a screen.
pub struct Stage {
    model: Model,
    terminal: Terminal<TestBackend>,
}

impl Stage {
    pub fn new(view_json: &str, lines: usize, (columns, rows): (u16, u16)) -> Option<Self> {
        let mut model = Model::new(Theme::MONO, (columns, rows), Timestamp::UNIX_EPOCH, TimeZone::UTC);
        let run: ralph_loop_protocol::display::view::RunView = serde_json::from_str(view_json).ok()?;
        model.screen = Screen::Run;
        model.run.id = run.run_id.to_string();
        model.run.tab = 1;
        update(&mut model, Msg::View(Box::new(run)));
        let terminal = Terminal::new(TestBackend::new(columns, rows)).ok()?;
        let mut stage = Self { model, terminal };
        for n in 0..lines {
            stage.output(&format!("line {n} of what an agent printed, with some words to fill the line\n"));
        }
        Some(stage)
    }

    pub fn frame(&mut self) {
        let mut drawn = crate::view::Drawn::default();
        let model = &self.model;
        let _ = self.terminal.draw(|frame| drawn = view(model, frame));
        self.model.hits = drawn.hits;
        self.model.run.height = drawn.height;
    }

    pub fn output(&mut self, text: &str) {
        update(&mut self.model, Msg::Told(Vec::new(), vec![Live::Piece(Kind::Said, text.to_owned())]));
    }

    pub fn key(&mut self, key: char) {
        update(&mut self.model, Msg::Key((KeyCode::Char(key), KeyModifiers::NONE)));
    }
}
