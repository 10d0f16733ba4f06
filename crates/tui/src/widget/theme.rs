//! Colors by role, and symbols with ASCII equivalents. Backgrounds are never painted.

use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::look::{AGENT_COLORS, ColorRole, Look};
use ralph_loop_protocol::status::Status;
use ratatui::style::{Color, Modifier, Style};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// No colors: only weight and symbols.
    Mono,
    /// The terminal's sixteen colors.
    Sixteen,
    /// True color.
    True,
}

/// The meaning of a text, independent of its look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Content.
    Text,
    /// Times, ids, hints.
    Muted,
    /// Titles.
    Strong,
    /// The next action, focus, links.
    Accent,
    /// Proven, passing.
    Good,
    /// Needs the user, nearly used up, waiting.
    Attention,
    /// Failing.
    Bad,
    /// An agent's tag in this color.
    Agent(usize),
    /// The active line.
    Selected,
    /// A search match.
    Match,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Good,
    Bad,
    Now,
    Open,
    Half,
    NeedsYou,
    Wait,
    Note,
    Point,
    Rule,
    Bar,
    Full,
    Empty,
    Arrow,
}

/// How things look on this terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    pub depth: Depth,
    /// The background is light.
    pub light: bool,
    /// Unicode symbols are allowed.
    pub unicode: bool,
}

/// Shades for dark and light backgrounds, with enough contrast on each.
struct Shades {
    muted: (u8, u8, u8),
    accent: (u8, u8, u8),
    good: (u8, u8, u8),
    attention: (u8, u8, u8),
    bad: (u8, u8, u8),
}

const DARK: Shades = Shades {
    muted: (140, 144, 153),
    accent: (86, 194, 214),
    good: (124, 196, 116),
    attention: (226, 180, 85),
    bad: (235, 112, 112),
};

const LIGHT: Shades = Shades {
    muted: (95, 99, 108),
    accent: (0, 105, 128),
    good: (28, 110, 40),
    attention: (138, 88, 0),
    bad: (176, 32, 40),
};

/// The nearest of sixteen to each agent color, except green, yellow and red, which have a meaning.
const SIXTEEN: [Color; 6] =
    [Color::Magenta, Color::Cyan, Color::LightBlue, Color::LightCyan, Color::LightMagenta, Color::Blue];

impl Theme {
    /// No colors: for tests and terminals without them.
    #[cfg(test)]
    pub const MONO: Self = Self { depth: Depth::Mono, light: false, unicode: true };

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
                    Role::Agent(n) => {
                        let color = AGENT_COLORS[n % AGENT_COLORS.len()];
                        rgb(if self.light { color.light } else { color.dark })
                    }
                    _ => return plain,
                };
                plain.fg(Color::Rgb(r, g, b))
            }
        }
    }

    pub fn sign(&self, sign: Sign) -> &'static str {
        let of_status = |status: Status| status.look().sign(self.unicode);
        match (sign, self.unicode) {
            (Sign::Good, _) => of_status(Status::Done),
            (Sign::Bad, _) => of_status(Status::Failed),
            (Sign::Now, _) => of_status(Status::Working),
            (Sign::Open, _) => of_status(Status::Queued),
            (Sign::Half, _) => of_status(Status::Verifying),
            (Sign::NeedsYou, _) => of_status(Status::NeedsYou),
            (Sign::Wait, _) => of_status(Status::Waiting),
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

    /// Symbol and role of a status word.
    pub fn look(&self, status: &str) -> (&'static str, Role) {
        let look = Look::of_word(status);
        let role = match look.role {
            ColorRole::Muted => Role::Muted,
            ColorRole::Accent => Role::Accent,
            ColorRole::Attention => Role::Attention,
            ColorRole::Good => Role::Good,
            ColorRole::Bad => Role::Bad,
        };
        (look.sign(self.unicode), role)
    }

    /// Symbols of a sparkline.
    pub fn steps(&self) -> &'static [&'static str] {
        if self.unicode {
            &["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]
        } else {
            &["_", ".", "-", "=", "^"]
        }
    }
}

pub fn of_tone(tone: Tone) -> Role {
    match tone {
        Tone::Plain => Role::Text,
        Tone::Muted => Role::Muted,
        Tone::Good => Role::Good,
        Tone::Attention => Role::Attention,
        Tone::Bad => Role::Bad,
    }
}

/// The parts of `#rrggbb`.
fn rgb(color: &str) -> (u8, u8, u8) {
    let part = |at: usize| {
        color.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or_default()
    };
    (part(1), part(3), part(5))
}
