// Made by `npm run types` from schemas/looks.json. Do not edit.
export const LOOKS = {
  "agents": [
    "claude",
    "codex",
    "gemini",
    "opencode",
    "actions",
    "scripted"
  ],
  "colors": [
    {
      "dark": "#b59af0",
      "light": "#6a3fb5"
    },
    {
      "dark": "#5cc3d9",
      "light": "#0b6e87"
    },
    {
      "dark": "#f0a070",
      "light": "#a0460f"
    },
    {
      "dark": "#8fcf8f",
      "light": "#2f6f2f"
    },
    {
      "dark": "#f08cc4",
      "light": "#a0286e"
    },
    {
      "dark": "#9db8f0",
      "light": "#37568f"
    }
  ],
  "statuses": {
    "done": {
      "ascii": "ok",
      "rank": 2,
      "role": "good",
      "sign": "✓"
    },
    "failed": {
      "ascii": "x",
      "rank": 2,
      "role": "bad",
      "sign": "✗"
    },
    "gone": {
      "ascii": "-",
      "rank": 2,
      "role": "muted",
      "sign": "–"
    },
    "interrupted": {
      "ascii": "!!",
      "rank": 2,
      "role": "attention",
      "sign": "◌"
    },
    "needs you": {
      "ascii": "!",
      "rank": 0,
      "role": "attention",
      "sign": "▲"
    },
    "paused": {
      "ascii": "||",
      "rank": 2,
      "role": "attention",
      "sign": "‖"
    },
    "preparing": {
      "ascii": "o",
      "rank": 1,
      "role": "accent",
      "sign": "◔"
    },
    "proving": {
      "ascii": "%",
      "rank": 1,
      "role": "accent",
      "sign": "◑"
    },
    "publishing": {
      "ascii": "*",
      "rank": 1,
      "role": "accent",
      "sign": "◕"
    },
    "queued": {
      "ascii": "o",
      "rank": 2,
      "role": "muted",
      "sign": "○"
    },
    "stopped": {
      "ascii": "[]",
      "rank": 2,
      "role": "bad",
      "sign": "■"
    },
    "unreadable": {
      "ascii": "-",
      "rank": 2,
      "role": "bad",
      "sign": "–"
    },
    "verifying": {
      "ascii": "%",
      "rank": 1,
      "role": "accent",
      "sign": "◐"
    },
    "waiting": {
      "ascii": "~",
      "rank": 2,
      "role": "attention",
      "sign": "◷"
    },
    "working": {
      "ascii": "*",
      "rank": 1,
      "role": "accent",
      "sign": "●"
    }
  }
} as const;
