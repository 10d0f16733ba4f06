# Shared by the tests in this folder; sourced. Makes releases of a stand-in program and a server that offers them.
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"

has python3 || {
    echo "skipped: python3 is not installed"
    exit 0
}
# Finds rustup and cargo before a test sets its own home.
use_cargo || fail "no Rust that is new enough" "scripts/setup installs one."

work="$(mktemp -d)"
chmod 755 "$work"
server_pid=''
mounted=()
clean_up() {
    [ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null || true
    local place
    for place in "${mounted[@]}"; do umount "$place" || umount --lazy "$place" || true; done
    # Never into something that is still mounted.
    rm -rf --one-file-system "$work"
}
trap clean_up EXIT

# Releases 0.1.0 and 0.2.0 of the stand-in, laid out as a server of releases has them.
make_releases() {
    local version libc
    mkdir -p "$work/site/latest"
    for version in 0.1.0 0.2.0; do
        sed "s/@VERSION@/$version/" install/tests/stand-in >"$work/stand-in"
        chmod 755 "$work/stand-in"
        # Larger than a page, so that half of it is really half, and a small disk is full of it.
        head -c 300000 /dev/urandom | base64 | sed 's/^/# /' >>"$work/stand-in"
        for libc in gnu musl; do
            scripts/release --binary "$work/stand-in" --version "$version" --target "$(uname -m)-unknown-linux-$libc" --archive-only \
                --out "$work/site/download/v$version" 2>"$work/release.log" || {
                cat "$work/release.log" >&2
                return 1
            }
        done
    done
    ln -s "../download/v0.2.0" "$work/site/latest/download"
    chmod -R a+rX "$work/site"
}

start_server() {
    : >"$work/log"
    chmod 666 "$work/log"
    install/tests/server "$work/site" "$work/log" >"$work/address" 2>"$work/server.log" &
    server_pid=$!
    local waited=0
    until [ -s "$work/address" ]; do
        kill -0 "$server_pid" || fail "the server does not start" "$(cat "$work/server.log")"
        waited=$((waited + 1))
        [ "$waited" -lt 200 ] || fail "the server does not start" "It prints no address."
        sleep 0.05
    done
    address="$(cat "$work/address")"
}
