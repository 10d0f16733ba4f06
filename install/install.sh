#!/bin/sh
# Installs ralph for the user who runs it: no root, nothing but files below one folder, each step said.
#
#   curl -fsSL https://github.com/ralph-loop/ralph/releases/latest/download/install.sh | sh
#   sh install.sh [--version V] [--prefix DIR] [--sha256 SUM] [--dry-run] [--force]
#
#   --version V    this version instead of the newest
#   --prefix DIR   below this folder (default: ~/.local, for root /usr/local)
#   --sha256 SUM   the archive must have this sum, which you got another way
#   --dry-run      only say what would be done
#   --force        also over a program `ralph` that something else put there
#
# RALPH_DOWNLOAD_URL names another place with releases. Proxies: HTTPS_PROXY, ALL_PROXY, NO_PROXY.
# What it put there stands in PREFIX/share/ralph/installed; PREFIX/share/ralph/uninstall.sh takes it away again.
set -eu

DEFAULT_URL=https://github.com/ralph-loop/ralph/releases
# The oldest C library that the `gnu` archives run on; older ones get the static `musl` archive.
GLIBC_NEEDED=2.36
NEWLINE='
'
# They change what `cd` and the tools below do, and none of it is meant for this script.
unset CDPATH TAR_OPTIONS GZIP GREP_OPTIONS

say() { printf '%s\n' "install: $*" >&2; }

# An error in three lines: what failed; why; what mends it.
fail() {
    printf 'error: %s\n  %s\nnext: %s\n' "$1" "$2" "$3" >&2
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# How this system installs a package, in backticks.
getting() {
    for manager in 'apt-get install' 'dnf install' 'apk add' 'pacman -S' 'zypper install' 'brew install'; do
        if has "${manager%% *}"; then
            printf "\`%s %s\`" "$manager" "$1"
            return 0
        fi
    done
    printf 'the package %s' "$1"
}

usage() {
    sed -n '2,15s/^# \{0,1\}//p' "$0" 2>/dev/null | grep . ||
        printf 'install.sh [--version V] [--prefix DIR] [--sha256 SUM] [--dry-run] [--force]\n'
}

# --- what is wanted -----------------------------------------------------------------------------------------------------

read_arguments() {
    version='' prefix='' pinned='' dry_run=no force=no
    while [ $# -gt 0 ]; do
        case "$1" in
        --version | --prefix | --sha256)
            [ -n "${2:-}" ] || fail "$1 needs a value" "Nothing stands behind it." "install.sh --help shows how it is used"
            case "$1" in
            --version) version="${2#v}" ;;
            --prefix) prefix="$2" ;;
            --sha256) pinned="$2" ;;
            esac
            shift
            ;;
        --version=*) version="${1#*=}" version="${version#v}" ;;
        --prefix=*) prefix="${1#*=}" ;;
        --sha256=*) pinned="${1#*=}" ;;
        --dry-run) dry_run=yes ;;
        --force) force=yes ;;
        -h | --help)
            usage
            exit 0
            ;;
        *) fail "unknown argument \`$1\`" "install.sh does not know it." "install.sh --help shows how it is used" ;;
        esac
        shift
    done
    case "$version" in
    *[!0-9A-Za-z.-]* | [!0-9]*) fail "\`$version\` is no version" "A version looks like 0.2.0." "name one that was released, or none for the newest" ;;
    esac
    if [ -n "$pinned" ]; then
        pinned="$(printf '%s' "$pinned" | tr 'ABCDEF' 'abcdef')"
        is_sum "$pinned" || fail "\`$pinned\` is no SHA-256 sum" "It has 64 hexadecimal digits." "copy it whole"
    fi
}

is_sum() {
    case "$1" in
    *[!0-9a-f]*) return 1 ;;
    esac
    [ "${#1}" -eq 64 ]
}

find_prefix() {
    if [ -z "${HOME:-}" ] && has getent; then HOME="$(getent passwd "$(id -u)" | cut -d: -f6)"; fi
    if [ -z "$prefix" ]; then
        if [ "$(id -u)" -eq 0 ]; then
            prefix=/usr/local
        else
            [ -n "${HOME:-}" ] || fail "there is no home folder" "HOME is not set." "name a folder with --prefix"
            prefix="$HOME/.local"
        fi
    fi
    case "$prefix" in
    *"$NEWLINE"*) fail "the prefix has a line break in it" "Its list of files could not be written." "name another folder with --prefix" ;;
    /*) ;;
    "~"/*) prefix="${HOME:-}/${prefix#??}" ;;
    *) prefix="$(pwd)/$prefix" ;;
    esac
    prefix="${prefix%/}"
}

find_base() {
    base="${RALPH_DOWNLOAD_URL:-$DEFAULT_URL}"
    base="${base%/}"
    case "$base" in
    https://*) plain=no ;;
    # `http://localhost:x@elsewhere` is not this machine.
    http://*@*) plain=other ;;
    http://127.0.0.1[:/]* | http://localhost[:/]* | http://127.0.0.1 | http://localhost) plain=yes ;;
    *) plain=other ;;
    esac
    [ "$plain" != other ] || fail "\`$base\` is no address of releases" "Only https:// is used (http:// on this machine alone)." \
        "set RALPH_DOWNLOAD_URL to such an address, or unset it"
}

# --- this machine -------------------------------------------------------------------------------------------------------

# Whether version $1 is at least $2; both are two numbers.
at_least() {
    awk -v a="$1" -v b="$2" 'BEGIN { split(a, x, "."); split(b, y, "."); exit !(x[1] + 0 > y[1] + 0 || (x[1] + 0 == y[1] + 0 && x[2] + 0 >= y[2] + 0)) }'
}

# Whether version $1 is older than $2, by their three numbers.
is_older() {
    awk -v a="${1%%-*}" -v b="${2%%-*}" 'BEGIN {
        split(a, x, "."); split(b, y, ".")
        for (i = 1; i <= 3; i++) if (x[i] + 0 != y[i] + 0) exit !(x[i] + 0 < y[i] + 0)
        exit 1
    }'
}

# The targets that run here, the best first.
find_targets() {
    system="$(uname -s)" machine="$(uname -m)"
    case "$machine" in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "there is no archive for $machine" "Releases are made for x86-64 and arm64." "build it from its source: cargo install --locked --path crates/cli" ;;
    esac
    case "$system" in
    Linux)
        libc="$(getconf GNU_LIBC_VERSION 2>/dev/null | sed -n 's/^glibc \([0-9.]*\).*/\1/p' || true)"
        if [ -n "$libc" ] && at_least "$libc" "$GLIBC_NEEDED"; then
            targets="$machine-unknown-linux-gnu $machine-unknown-linux-musl"
        else
            targets="$machine-unknown-linux-musl"
        fi
        ;;
    Darwin) targets="$machine-apple-darwin" ;;
    *) fail "there is no archive for $system" "Releases are made for Linux and macOS." "use it on a Linux machine, or in a virtual one" ;;
    esac
}

find_tools() {
    if has curl; then
        tool=curl
    elif has wget; then
        tool=wget
        # Others of that name know fewer options; with `-T` that of busybox 1.35 crashes.
        wget_options=''
        case "$(wget --version 2>/dev/null)" in
        "GNU Wget"*) wget_options='-T 60 -t 3 --max-redirect=5' ;;
        *) [ -z "${HTTPS_PROXY:-}${https_proxy:-}${ALL_PROXY:-}${all_proxy:-}" ] || say "note: this wget may know no way through a proxy; curl does" ;;
        esac
        # It knows the small names only.
        [ -n "${https_proxy:-}" ] || [ -z "${HTTPS_PROXY:-${ALL_PROXY:-}}" ] || export https_proxy="${HTTPS_PROXY:-$ALL_PROXY}"
        [ -n "${no_proxy:-}" ] || [ -z "${NO_PROXY:-}" ] || export no_proxy="$NO_PROXY"
    else
        fail "neither curl nor wget is here" "One of them fetches the archive." "install one ($(getting curl)), then try again"
    fi
    for hasher in sha256sum shasum openssl none; do
        if has "$hasher"; then break; fi
    done
    [ "$hasher" != none ] || fail "nothing here makes SHA-256 sums" "Without one the archive cannot be checked." "install coreutils (sha256sum), then try again"
    for needed in tar gzip awk; do
        has "$needed" || fail "$needed is not here" "The archive is unpacked with it." "install $needed, then try again"
    done
}

# --- fetching and checking ----------------------------------------------------------------------------------------------

# Fetches $1 into the file $2; `-` is stdout. Over TLS alone, but for this machine.
fetch() {
    if [ "$tool" = curl ]; then
        protocols='=https'
        [ "$plain" = no ] || protocols='=https,http'
        curl --fail --silent --show-error --location --proto "$protocols" --proto-redir "$protocols" --max-redirs 5 \
            --connect-timeout 20 --speed-limit 1 --speed-time 60 --retry 2 --output "$2" "$1"
    else
        # shellcheck disable=SC2086 # Options, one per word.
        wget -q $wget_options -O "$2" "$1"
    fi
}

sum_of() {
    case "$hasher" in
    sha256sum) sha256sum "$1" | cut -d' ' -f1 ;;
    shasum) shasum -a 256 "$1" | cut -d' ' -f1 ;;
    openssl) openssl dgst -sha256 -r "$1" | cut -d' ' -f1 ;;
    esac
}

# Sets `archive`, `listed`, `target` and `version` from the list of sums of the release.
choose_archive() {
    named=no
    [ -z "$version" ] || named=yes
    if [ "$named" = yes ]; then list="$base/download/v$version/SHA256SUMS"; else list="$base/latest/download/SHA256SUMS"; fi
    say "reading $list"
    sums="$(fetch "$list" -)" || fail "the list of sums cannot be fetched" "The line above says why; $list was asked for." \
        "look at the network, the proxy (HTTPS_PROXY) and the version, then try again"
    for target in $targets none; do
        line="$(printf '%s\n' "$sums" | awk -v end="-$target.tar.gz" '
            $2 ~ /^\*?ralph-[0-9]/ && substr($2, length($2) - length(end) + 1) == end { sub(/^\*/, "", $2); print $1, $2; exit }')"
        [ -z "$line" ] || break
    done
    if [ "$target" = none ]; then
        fail "the release has no archive for this machine" "It would be one of: $targets." \
            "build it from its source: cargo install --locked --path crates/cli"
    fi
    listed="${line%% *}" archive="${line#* }"
    is_sum "$listed" || fail "the list of sums cannot be read" "The sum of $archive is not 64 hexadecimal digits." "try again; nothing was changed"
    found="${archive#ralph-}" found="${found%-"$target".tar.gz}"
    case "$found" in
    '' | *[!0-9A-Za-z.-]*) fail "the list of sums cannot be read" "\`$archive\` has no version in its name." "try again; nothing was changed" ;;
    esac
    [ -z "$version" ] || [ "$version" = "$found" ] || fail "the list of sums is that of another version" "$found instead of $version." "try again; nothing was changed"
    version="$found"
    [ -z "$pinned" ] || [ "$pinned" = "$listed" ] || fail "$archive is not the one that --sha256 means" \
        "The release lists $listed." "take the sum of the version that you want, or name that version with --version"
}

# What is there already: an older version of ours, or something else of the same name.
look_at_place() {
    list_file="$prefix/share/ralph/installed"
    before=''
    if [ -f "$list_file" ]; then
        before="$(sed -n '1s/^ralph \([^ ]*\).*/\1/p' "$list_file")"
        # Nobody who asks for the newest means an older one: a mirror is behind, or somebody offers what has known faults.
        if [ "$named" = no ] && is_older "$version" "$before"; then
            fail "ralph $before is below $prefix, and the newest there is $version" "Without a name, no older version takes its place." \
                "look at $base, or name it: --version $version"
        fi
    elif [ -e "$prefix/bin/ralph" ] || [ -h "$prefix/bin/ralph" ]; then
        [ "$force" = yes ] || fail "$prefix/bin/ralph is there and did not come from here" \
            "It may be another program, or come from a package manager." \
            "remove it, choose another folder with --prefix, or replace it with --force"
    fi
}

# --- putting it there ---------------------------------------------------------------------------------------------------

make_staging() {
    umask 022
    for folder in "$prefix/share/ralph" "$prefix/bin"; do
        mkdir -p "$folder" 2>/dev/null || true
        [ -w "$folder" ] || fail "cannot write below $prefix" "This user may not, or there is no room." "name a folder of your own with --prefix"
    done
    # Below the prefix: on the same disk, so that everything after the checks is only renaming.
    staging="$(mktemp -d "$prefix/share/ralph/.install-XXXXXX")" || fail "cannot write below $prefix" "The line above says why." "make room, or name another folder with --prefix"
    trap 'rm -rf "$staging"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

download() {
    say "fetching $base/download/v$version/$archive"
    fetch "$base/download/v$version/$archive" "$staging/archive" || fail "$archive did not come whole" \
        "The line above says why: the network, the server, or no room below $prefix." "try again; nothing was changed"
    found="$(sum_of "$staging/archive")"
    [ "$found" = "$listed" ] || fail "$archive is not what its sum says: $found" \
        "It should be $listed; the download was torn or changed on its way." "try again, and do not use what came; nothing was changed"
    say "its sum is $found, as the release lists it${pinned:+ and you named it}"
}

strange() { fail "$archive has files that do not belong there" "$1" "report it; nothing was changed"; }

# Regular files and folders below the archive's own folder, under plain names, and nothing else.
unpack() {
    folder="${archive%.tar.gz}"
    names="$(tar -tzf "$staging/archive")" || fail "$archive cannot be read" "The line above says why." "try again; nothing was changed"
    if printf '%s\n' "$names" | awk -v folder="$folder/" 'index($0, folder) != 1 || /(^|\/)\.\.(\/|$)/ || /[^0-9A-Za-z._+@~\/-]/ { bad = 1 } END { exit !bad }'; then
        strange "A path leads elsewhere, or is not written in plain characters."
    fi
    if tar -tvzf "$staging/archive" | grep -qv '^[-d]'; then strange "Not all of them are regular files."; fi
    mkdir "$staging/tree"
    tar -xzof "$staging/archive" -C "$staging/tree" || fail "$archive cannot be unpacked" "The line above says why; often there is no room." \
        "make room below $prefix, then try again; nothing was changed"
    tree="$staging/tree/$folder"
    # The tar of busybox lists a second name of a file like a file of its own.
    [ -z "$(find "$staging/tree" ! -type d ! \( -type f -links 1 \))" ] || strange "One of them is a link."
    # For root, tar gives files the rights that the archive names; these everybody may use, and only their owner change.
    chmod -R u=rwX,go=rX "$staging/tree"
    said="$("$tree/bin/ralph" --version 2>&1)" || fail "the program does not start here" "${said:-It says nothing.}" \
        "report it with what \`uname -a\` says; nothing was changed"
    [ "$said" = "ralph $version" ] || fail "the program is not ralph $version" "It says: $said" "report it; nothing was changed"
}

half_done() { fail "not all files could be put below $prefix" "The line above says why." "mend that, then run it again: it begins anew"; }

# From here on only names change. The list goes first, so that whatever comes is known to uninstall.sh; the program last.
put_in_place() {
    files="$(cd "$tree" && find . -type f | sed 's/^\.\///' | sort)"
    in_the_way="$(printf '%s\n' "$files" | while IFS= read -r file; do if [ -d "$prefix/$file" ]; then printf '%s\n' "$prefix/$file"; fi; done | sed -n 1p)"
    [ -z "$in_the_way" ] || fail "$in_the_way is a folder" "A file of that name is to go there." "move it away, or name another folder with --prefix; nothing was changed"
    old=''
    [ -z "$before" ] || old="$(sed 1d "$list_file")"
    {
        printf 'ralph %s %s\n' "$version" "$target"
        printf '%s\nshare/ralph/installed\n' "$files" | sort -u
    } >"$staging/installed"
    mv -f "$staging/installed" "$list_file"
    printf '%s\n' "$files" | grep -vx bin/ralph | while IFS= read -r file; do
        if ! mkdir -p "$prefix/$(dirname "$file")" || ! mv -f "$tree/$file" "$prefix/$file"; then exit 1; fi
    done || half_done
    mv -f "$tree/bin/ralph" "$prefix/bin/ralph" || half_done
    # What the version before had and this one has not.
    printf '%s\n' "$old" | while IFS= read -r file; do
        case "$file" in
        '' | . | .. | /* | ../* | */../* | */..) continue ;;
        esac
        grep -qxF "$file" "$list_file" || rm -f "$prefix/$file"
    done
}

tell_the_rest() {
    case "$before" in
    '') say "ralph $version is in $prefix/bin" ;;
    "$version") say "ralph $version is in $prefix/bin, put there anew" ;;
    *) say "ralph $version is in $prefix/bin, where $before was" ;;
    esac
    for wanted in git bwrap; do
        has "$wanted" && continue
        case "$wanted" in
        git) say "git is not here, and ralph needs it: install it ($(getting git))" ;;
        bwrap) [ "$system" != Linux ] || say "bubblewrap is not here; with it agents are fenced off best ($(getting bubblewrap))" ;;
        esac
    done
    case ":$PATH:" in
    *":$prefix/bin:"*)
        first="$(command -v ralph || true)"
        [ "$first" = "$prefix/bin/ralph" ] || [ -z "$first" ] || say "note: \`ralph\` is $first, which stands before $prefix/bin on your PATH"
        ;;
    *)
        say "$prefix/bin is not on your PATH; this puts it there:"
        # shellcheck disable=SC2016 # The variable is for the user's shell.
        case "${SHELL:-}" in
        */fish) printf '  fish_add_path "%s/bin"\n' "$prefix" >&2 ;;
        */zsh) printf '  echo '\''export PATH="%s/bin:$PATH"'\'' >> ~/.zshrc && . ~/.zshrc\n' "$prefix" >&2 ;;
        *) printf '  echo '\''export PATH="%s/bin:$PATH"'\'' >> ~/.profile && . ~/.profile\n' "$prefix" >&2 ;;
        esac
        ;;
    esac
    say "next: \`ralph demo\` shows a whole run, without an account; in a repo of yours: ralph run \"Fix the failing tests\""
    say "to take it away again: sh $prefix/share/ralph/uninstall.sh"
}

# Called in the last line: a script that came only in part does nothing.
main() {
    read_arguments "$@"
    find_prefix
    find_base
    find_targets
    find_tools
    choose_archive
    look_at_place
    if [ "$dry_run" = yes ]; then
        say "would fetch $base/download/v$version/$archive"
        say "would compare its sum with $listed"
        say "would put ralph $version below $prefix${before:+, where $before is}; nothing was changed"
        return 0
    fi
    make_staging
    download
    unpack
    put_in_place
    tell_the_rest
}

main "$@"
