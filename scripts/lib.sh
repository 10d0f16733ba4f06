# Shared by the scripts in this folder; sourced, not run.
# Sets ROOT and CARGO_TARGET_DIR, changes to ROOT, and finds a cargo that is new enough.

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
cd "$ROOT"

# A bare machine may start us without HOME.
if [ -z "${HOME:-}" ]; then
    HOME="$(getent passwd "$(id -u)" | cut -d: -f6)"
    export HOME
fi

# One build folder for every script and every checkout, outside the checkout.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ralph-build}"

say() { printf '%s\n' "$*" >&2; }

# Prints an error in three lines: what failed, the likely cause, the next step.
fail() {
    local line
    say "error: $1"
    shift
    for line in "$@"; do say "  $line"; done
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# The oldest Rust that builds the workspace, from Cargo.toml.
rust_wanted() { sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml | head -n 1; }

# Whether version $1 is at least $2.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# Prints the version of the cargo on the PATH; empty if there is none.
cargo_version() { cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9.]*\).*/\1/p' || true; }

cargo_is_new_enough() {
    local version
    version="$(cargo_version)"
    [ -n "$version" ] && at_least "$version" "$(rust_wanted)"
}

# Finds a cargo that is new enough: the one on the PATH, else the user's own, else one that scripts/setup unpacked, else a
# newer rustup toolchain. Prints nothing; returns 1 if there is none.
use_cargo() {
    local bin="${CARGO_HOME:-$HOME/.cargo}/bin" toolchain
    # The search must not install anything.
    export RUSTUP_AUTO_INSTALL=0
    export PATH="$PATH:$bin"
    cargo_is_new_enough && return 0
    export PATH="$bin:$PATH"
    hash -r
    cargo_is_new_enough && return 0
    if [ -x "$CARGO_TARGET_DIR/rust/bin/cargo" ]; then
        export PATH="$CARGO_TARGET_DIR/rust/bin:$PATH"
        hash -r
        cargo_is_new_enough && return 0
    fi
    for toolchain in stable "$(rust_wanted)"; do
        export RUSTUP_TOOLCHAIN="$toolchain"
        cargo_is_new_enough && return 0
    done
    unset RUSTUP_TOOLCHAIN
    return 1
}

# Installs the dashboard's packages from its lock file. A registry without the optional packages of every platform fails
# `npm ci`; `npm install` with the same lock needs only those of this platform.
page_packages() {
    npm ci --no-audit --no-fund --silent 2>/dev/null || npm install --no-save --no-audit --no-fund --silent
}

# Builds the dashboard into a folder: build_page FOLDER [types]. `types` writes its types from schemas/ first.
build_page() {
    has npm || fail "npm is missing" "The dashboard is built with Node 20.19 or newer." "Install both, then try again."
    (cd web && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 page_packages && npm run --silent "${2:-types:check}" && npm run --silent build -- --logLevel error --emptyOutDir --outDir "$1") >&2
}

# npm_folder FOLDER WITHOUT PACKAGE...: installs pinned packages into a folder outside the checkout, all or none. npm can't
# repair an interrupted install, so a folder without its stamp is recreated. WITHOUT says how to do without the packages.
npm_folder() {
    local dir="$1" without="$2" wanted
    shift 2
    wanted="$(printf '%s\n' "$@")"
    npm_folder_is_whole() { [ -f "$dir/installed" ] && [ "$(cat "$dir/installed")" = "$wanted" ]; }
    mkdir -p "$dir"
    npm_folder_is_whole && return 0
    # Of several tests that start at once, one installs and the others wait.
    if has flock; then
        exec 9>"$dir/lock"
        flock 9
        npm_folder_is_whole && return 0
    fi
    has npm || fail "npm is missing" \
        "The programs that tests use are npm packages." \
        "Install Node.js 20 or newer with npm and try again, or do without: $without."
    say "npm install into $dir"
    rm -rf "$dir/installed" "$dir/node_modules" "$dir/package-lock.json"
    printf '{ "private": true, "type": "module" }\n' >"$dir/package.json"
    npm install --prefix "$dir" --save-exact --no-audit --no-fund --no-progress --loglevel=error "$@" \
        </dev/null >&2 || fail "npm could not install into $dir" \
        "The lines above say why; often there is no network, or the disk is full." \
        "Mend that and try again, or do without: $without."
    printf '%s\n' "$wanted" >"$dir/installed"
}

# python_programs FOLDER PACKAGE...: installs pinned programs from the Python index into a folder.
# `FOLDER/complete` marks a finished install.
python_programs() {
    local folder="$1" install
    shift
    [ ! -e "$folder/complete" ] || return 0
    has python3 || fail "python3 is not installed" "$1 is a Python program." "Install python3 with its venv module."
    mkdir -p "$(dirname "$folder")"
    # Of several tests that start at once, one installs and the others wait.
    exec 9>"$folder.lock"
    flock 9
    [ ! -e "$folder/complete" ] || return 0
    say "installing $* into $folder"
    rm -rf "$folder"
    python3 -m venv "$folder" ||
        fail "no virtual environment could be made" "python3 has no venv module." "On Debian: apt-get install python3-venv"
    # uv unpacks in parallel and needs about a third of pip's time. pip is the fallback.
    if "$folder/bin/pip" install --quiet --disable-pip-version-check "uv>=0.9.18" >&2; then
        install=("$folder/bin/uv" pip install --quiet --python "$folder/bin/python")
    else
        install=("$folder/bin/pip" install --quiet --disable-pip-version-check)
    fi
    "${install[@]}" "$@" >&2 ||
        fail "$* could not be installed" "The package index may be out of reach." "Try again with a network."
    # Compiles now: at the first start it would write thousands of small files while the tests wait.
    "$folder/bin/python" -m compileall -q -j 2 "$folder/lib" >/dev/null 2>&1 || true
    touch "$folder/complete"
}
