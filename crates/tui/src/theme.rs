//! Colours by role, and signs with their ASCII twins. Backgrounds are the user's: nothing here paints one.

use ralph_domain::describe::Tone;
use ralph_domain::status::Status;
use ratatui::style::{Color, Modifier, Style};

/// How many colours the terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// None, or none are wanted: weight and signs alone tell things apart.
    Mono,
    /// The sixteen of every terminal, in the user's own shades.
    Sixteen,
    /// Any.
    True,
}

/// What a text is, whatever it looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Content.
    Text,
    /// Times, ids, hints.
    Muted,
    /// Titles.
    Strong,
    /// The one next action, focus, links.
    Accent,
    /// Proven, passing.
    Good,
    /// Needs a person, nearly used up, waiting.
    Attention,
    /// Failing.
    Bad,
    /// The tag of the agent of this number.
    Agent(usize),
    /// The line that keys act on.
    Selected,
    /// Found by a search.
    Match,
}

/// A sign of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Good,
    Bad,
    Now,
    Open,
    Half,
    Pause,
    Wait,
    Note,
    Point,
    Rule,
    Bar,
    Full,
    Empty,
    Arrow,
}

/// How things look here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// How many colours there are.
    pub depth: Depth,
    /// The background is light.
    pub light: bool,
    /// Signs may be Unicode.
    pub unicode: bool,
}

/// Shades for a dark and a light background, with enough contrast on each.
struct Shades {
    muted: (u8, u8, u8),
    accent: (u8, u8, u8),
    good: (u8, u8, u8),
    attention: (u8, u8, u8),
    bad: (u8, u8, u8),
    agents: [(u8, u8, u8); 6],
}

const DARK: Shades = Shades {
    muted: (140, 144, 153),
    accent: (86, 194, 214),
    good: (124, 196, 116),
    attention: (226, 180, 85),
    bad: (235, 112, 112),
    agents: [
        (122, 162, 247),
        (198, 146, 233),
        (115, 201, 173),
        (224, 160, 110),
        (229, 131, 178),
        (170, 186, 90),
    ],
};

const LIGHT: Shades = Shades {
    muted: (95, 99, 108),
    accent: (0, 105, 128),
    good: (28, 110, 40),
    attention: (138, 88, 0),
    bad: (176, 32, 40),
    agents: [(34, 80, 190), (120, 50, 165), (0, 110, 84), (150, 74, 10), (165, 30, 105), (84, 98, 0)],
};

const SIXTEEN: [Color; 6] =
    [Color::Blue, Color::Magenta, Color::Cyan, Color::LightBlue, Color::LightMagenta, Color::LightCyan];

impl Theme {
    /// Without colours, for tests and terminals that have none.
    pub const MONO: Self = Self { depth: Depth::Mono, light: false, unicode: true };

    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        let plain = Style::new();
        match role {
            Role::Text => return plain,
            Role::Strong => return plain.add_modifier(Modifier::BOLD),
            Role::Selected => return plain.add_modifier(Modifier::REVERSED),
            Role::Match => return plain.add_modifier(Modifier::REVERSED | Modifier::BOLD),
            _ => {}
        }
        match self.depth {
            Depth::Mono => match role {
                Role::Muted => plain.add_modifier(Modifier::DIM),
                Role::Accent | Role::Attention | Role::Bad => plain.add_modifier(Modifier::BOLD),
                _ => plain,
            },
            Depth::Sixteen => match role {
                Role::Muted => plain.add_modifier(Modifier::DIM),
                Role::Accent => plain.fg(Color::Cyan),
                Role::Good => plain.fg(Color::Green),
                Role::Attention => plain.fg(Color::Yellow),
                Role::Bad => plain.fg(Color::Red),
                Role::Agent(n) => plain.fg(SIXTEEN[n % SIXTEEN.len()]),
                _ => plain,
            },
            Depth::True => {
                let shades = if self.light { &LIGHT } else { &DARK };
                let (r, g, b) = match role {
                    Role::Muted => shades.muted,
                    Role::Accent => shades.accent,
                    Role::Good => shades.good,
                    Role::Attention => shades.attention,
                    Role::Bad => shades.bad,
                    Role::Agent(n) => shades.agents[n % shades.agents.len()],
                    _ => return plain,
                };
                plain.fg(Color::Rgb(r, g, b))
            }
        }
    }

    /// A sign as this terminal can show it.
    pub fn sign(&self, sign: Sign) -> &'static str {
        match (sign, self.unicode) {
            (Sign::Good, true) => "✓",
            (Sign::Good, false) => "ok",
            (Sign::Bad, true) => "✗",
            (Sign::Bad, false) => "x",
            (Sign::Now, true) => "●",
            (Sign::Now, false) => "*",
            (Sign::Open, true) => "○",
            (Sign::Open, false) => "o",
            (Sign::Half, true) => "◐",
            (Sign::Half, false) => "%",
            // Wide in some terminals and narrow in others: two cells are kept for them.
            (Sign::Pause, true) => "‖",
            (Sign::Pause, false) => "=",
            (Sign::Wait, true) => "◔",
            (Sign::Wait, false) => "~",
            (Sign::Note, true) => "·",
            (Sign::Note, false) => "-",
            (Sign::Point, true) => "▸",
            (Sign::Point, false) => ">",
            (Sign::Rule, true) => "─",
            (Sign::Rule, false) => "-",
            (Sign::Bar, true) => "│",
            (Sign::Bar, false) => "|",
            (Sign::Full, true) => "▮",
            (Sign::Full, false) => "#",
            (Sign::Empty, true) => "▯",
            (Sign::Empty, false) => ".",
            (Sign::Arrow, true) => "→",
            (Sign::Arrow, false) => "->",
        }
    }

    /// Steps of a sparkline.
    pub fn steps(&self) -> &'static [&'static str] {
        if self.unicode {
            &["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]
        } else {
            &["_", ".", "-", "=", "^"]
        }
    }
}

/// The sign and the role of a status.
pub fn of_status(status: Status) -> (Sign, Role) {
    match status {
        Status::Queued => (Sign::Open, Role::Muted),
        Status::Preparing | Status::Working | Status::Publishing => (Sign::Now, Role::Accent),
        Status::Verifying | Status::Proving => (Sign::Half, Role::Accent),
        Status::Waiting => (Sign::Wait, Role::Attention),
        Status::Paused | Status::NeedsYou => (Sign::Pause, Role::Attention),
        Status::Done => (Sign::Good, Role::Good),
        Status::Failed | Status::Stopped => (Sign::Bad, Role::Bad),
    }
}

/// The role of a tone.
pub fn of_tone(tone: Tone) -> Role {
    match tone {
        Tone::Plain => Role::Text,
        Tone::Muted => Role::Muted,
        Tone::Good => Role::Good,
        Tone::Attention => Role::Attention,
        Tone::Bad => Role::Bad,
    }
}

/// A stable number for the name of an agent.
pub fn agent_number(name: &str) -> usize {
    match name {
        "claude" => 3,
        "codex" => 2,
        "gemini" => 0,
        "opencode" => 5,
        "qwen" => 1,
        other => other.bytes().fold(7_usize, |sum, b| sum.wrapping_mul(31).wrapping_add(usize::from(b))) % 6,
    }
}
