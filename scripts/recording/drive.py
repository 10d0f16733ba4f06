"""Plays a session of the terminal UI in tmux and writes it as an asciicast (version 2) on stdout.

Every step waits for what the screen must show before the next key, so a slow machine only makes longer pauses, and those are
cut. Nothing of this machine is in the cast: home and repo are in a folder of their own.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

HERE = Path(__file__).resolve().parent
COLUMNS, LINES = 100, 30
# A pause that is longer tells nothing more; what comes closer together is one frame.
PAUSE_MAX, APART = 1.4, 0.09
# Longest wait for something to appear.
LIMIT = 180

# What is done: wait for a text, rest for so long, then press these keys or type this text.
STEPS = [
    ("say in a sentence what is to be done", 1.6, ("type", "A coupon is taken off twice")),
    ("A coupon is taken off twice", 0.6, ("key", "Enter")),
    ("python3 -m unittest", 2.6, ("key", "C-v")),
    ("fractions of a cent", 1.8, ("key", "Enter")),
    ("half up", 1.2, ("key", "f")),
    ("fails now, as it should", 2.4, ("key", "w")),
    ("Enter starts the run", 1.6, ("key", "Enter")),
    ("codex is working", 0.4, ("key", "2")),
    ("What is left is the rounding", 1.0, ("key", "1")),
    ("proven", 3.4, ("key", "t")),
    ("coupon is now taken off once", 3.0, None),
]


def vars_of(folder, base, clis):
    """The variables of the session: nothing of whoever records."""
    home = folder / "home"
    settings = home / ".codex/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        'model = "gpt-5.5"\nmodel_provider = "scripted"\ncheck_for_update_on_startup = false\n[model_providers.scripted]\nname = "scripted"\n'
        f'base_url = "{base}/s/codex/codex/v1"\nenv_key = "SCRIPTED_API_KEY"\nwire_api = "responses"\n'
        '[analytics]\nenabled = false\n[otel]\nmetrics_exporter = "none"\n[features]\nplugins = false\napps = false\n'
    )
    programs = home / ".local/bin"
    programs.mkdir(parents=True)
    for name in ("claude", "codex"):
        (programs / name).symlink_to(Path(clis) / name)
    own = home / ".config/ralph/config.json"
    own.parent.mkdir(parents=True)
    server = urllib.parse.urlsplit(base)
    own.write_text(json.dumps({"allowed_hosts": [f"localhost:{server.port}"], "pass_env": ["SCRIPTED_API_KEY"]}))
    return {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "ANTHROPIC_BASE_URL": f"{base}/s/claude/claude",
        "ANTHROPIC_API_KEY": "scripted",
        "SCRIPTED_API_KEY": "scripted",
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def repo_in(folder, env, ralph):
    """The repo of the story, set up and trusted."""
    repo = folder / "home/shop"
    repo.mkdir(parents=True)
    for name in ("cart.py", "test_cart.py"):
        shutil.copy(HERE / name, repo)
    (repo / ".gitignore").write_text("__pycache__/\n")
    config = {
        "agent_priority": ["claude", "codex"],
        "verifiers": [{"name": "tests", "command_argv": ["python3", "-m", "unittest"]}],
        "max_iterations": 10,
    }
    (repo / ".ralph").mkdir()
    (repo / ".ralph/config.json").write_text(json.dumps(config, indent=2))
    run = lambda *words: subprocess.run(words, cwd=repo, env=env, check=True, stdout=subprocess.DEVNULL)
    run("git", "init", "--quiet", "--initial-branch=main")
    run("git", "config", "user.name", "You")
    run("git", "config", "user.email", "you@example.com")
    run("git", "add", "--all")
    run("git", "commit", "--quiet", "--message", "start")
    run(ralph, "trust", "--yes")
    return repo


class Terminal:
    """A tmux server of its own, whose output is written down as it comes."""

    def __init__(self, folder, repo, env, ralph):
        self.socket, self.env, self.raw = str(folder / "tmux.sock"), env, folder / "raw.jsonl"
        note = folder / "note.py"
        note.write_text(
            "import sys, time, json, os\n"
            "out = open(sys.argv[1], 'a')\n"
            "while piece := os.read(0, 65536):\n"
            "    out.write(json.dumps([time.time(), piece.decode('latin-1')]) + '\\n'); out.flush()\n"
        )
        self.call("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), "-c", str(repo), "sh")
        self.call("set-option", "-g", "status", "off")
        self.call("send-keys", "-l", "PS1='$ '; clear")
        self.call("send-keys", "Enter")
        time.sleep(1)
        self.call("pipe-pane", f"exec python3 {note} {self.raw}")
        time.sleep(0.5)
        self.call("send-keys", "-l", f"clear; exec {ralph}")
        self.call("send-keys", "Enter")

    def call(self, *words):
        done = subprocess.run(["tmux", "-S", self.socket, *words], env=self.env, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"tmux {' '.join(words)}: {done.stderr}")
        return done.stdout

    def shows(self, text):
        begun = time.time()
        while text not in (screen := self.call("capture-pane", "-p")):
            if time.time() - begun > LIMIT:
                sys.exit(f"`{text}` did not appear; the screen is:\n{screen}")
            time.sleep(0.1)

    def play(self):
        for text, rest, act in STEPS:
            self.shows(text)
            time.sleep(rest)
            match act:
                case ("type", words):
                    for letter in words:
                        self.call("send-keys", "-l", letter)
                        time.sleep(0.05)
                case ("key", name):
                    self.call("send-keys", name)
        self.call("kill-server")


def nearest(match):
    """A colour of 256 in the place of a true one: makers of pictures know those."""
    rgb = [int(part) for part in match.groups()]
    steps = [0, 95, 135, 175, 215, 255]
    cube = [min(range(6), key=lambda at: abs(steps[at] - part)) for part in rgb]
    grey = min(max(round((sum(rgb) / 3 - 8) / 10), 0), 23)
    far = lambda other: sum((a - b) ** 2 for a, b in zip(rgb, other))
    in_cube, in_grey = [steps[at] for at in cube], [8 + 10 * grey] * 3
    number = 232 + grey if far(in_grey) < far(in_cube) else 16 + 36 * cube[0] + 6 * cube[1] + cube[2]
    return f"38;5;{number}"


def cast(raw):
    """The cast: from the first frame on, without long pauses."""
    print(json.dumps({"version": 2, "width": COLUMNS, "height": LINES, "title": "ralph"}))
    frames = []
    for line in raw.read_text().splitlines():
        time_of, text = json.loads(line)
        if not frames:
            # What a shell echoes before the first frame is no part of it.
            start = text.find("\x1b[?1049h")
            if start < 0:
                continue
            frames.append([time_of, text[start:]])
        elif time_of - frames[-1][0] < APART:
            frames[-1][1] += text
        else:
            frames.append([time_of, text])
    at, last = 0.0, frames[0][0]
    for time_of, text in frames:
        text = text.encode("latin-1").decode("utf-8", "replace")
        text = re.sub(r"38;2;(\d+);(\d+);(\d+)", nearest, text)
        at += min(time_of - last, PAUSE_MAX)
        last = time_of
        print(json.dumps([round(at, 3), "o", text]))


def main():
    parser = argparse.ArgumentParser()
    for name in ("ralph", "server", "clis", "folder"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    folder = Path(args.folder)
    server = subprocess.Popen(
        [args.server, "--script", str(HERE / "story.json")], stdout=subprocess.PIPE, text=True
    )
    try:
        base = server.stdout.readline().strip()
        env = vars_of(folder, base, args.clis)
        repo = repo_in(folder, env, args.ralph)
        terminal = Terminal(folder, repo, env, args.ralph)
        terminal.play()
        cast(terminal.raw)
    finally:
        server.kill()


main()
