//! Colours by role, and signs with their ASCII twins. Backgrounds are the user's: nothing here paints one.

use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::look::{AGENT_COLORS, ColorRole, Look};
use ralph_loop_protocol::status::Status;
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
    /// The tag of an agent with this color.
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

/// The nearest of sixteen to each color of agents; green, yellow and red say how something went.
const SIXTEEN: [Color; 6] =
    [Color::Magenta, Color::Cyan, Color::LightBlue, Color::LightCyan, Color::LightMagenta, Color::Blue];

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

    /// A sign as this terminal can show it.
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

    /// The sign and the role of a status word.
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

    /// Steps of a sparkline.
    pub fn steps(&self) -> &'static [&'static str] {
        if self.unicode {
            &["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]
        } else {
            &["_", ".", "-", "=", "^"]
        }
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

/// The parts of `#rrggbb`.
fn rgb(color: &str) -> (u8, u8, u8) {
    let part = |at: usize| {
        color.get(at..at + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or_default()
    };
    (part(1), part(3), part(5))
}
