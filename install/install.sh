#!/bin/sh
# Installs ralph for the current user: no root, all files below one folder, every step printed.
#
#   curl -fsSL https://github.com/ralph-loop/ralph/releases/latest/download/install.sh | sh
#   sh install.sh [--version V] [--prefix DIR] [--sha256 SUM] [--dry-run] [--force]
#
#   --version V    install this version instead of the newest
#   --prefix DIR   install below this folder (default: ~/.local, for root /usr/local)
#   --sha256 SUM   require this checksum of the archive, from a source that you trust
#   --dry-run      print what would be done, change nothing
#   --force        replace a program `ralph` that something else installed
#
# RALPH_DOWNLOAD_URL sets another URL with releases. Proxies: HTTPS_PROXY, ALL_PROXY, NO_PROXY.
# PREFIX/share/ralph/installed lists the installed files; PREFIX/share/ralph/uninstall.sh removes them.
set -eu

DEFAULT_URL=https://github.com/ralph-loop/ralph/releases
# The oldest C library that the `gnu` archives run on; older ones get the static `musl` archive.
GLIBC_NEEDED=2.36
NEWLINE='
'
# They change what `cd` and the tools below do.
unset CDPATH TAR_OPTIONS GZIP GREP_OPTIONS

say() { printf '%s\n' "install: $*" >&2; }

# Prints an error in three lines: what failed, the cause, the next step.
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

# --- arguments ----------------------------------------------------------------------------------------------------------

read_arguments() {
    version='' prefix='' pinned='' dry_run=no force=no
    while [ $# -gt 0 ]; do
        case "$1" in
        --version | --prefix | --sha256)
            [ -n "${2:-}" ] || fail "$1 needs a value" "It comes last on the command line." "run \`install.sh --help\`"
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
        *) fail "unknown argument \`$1\`" "install.sh has no such option." "run \`install.sh --help\`" ;;
        esac
        shift
    done
    case "$version" in
    *[!0-9A-Za-z.-]* | [!0-9]*) fail "\`$version\` isn't a version" "Versions look like 0.2.0." "pass a released version, or leave --version out for the newest" ;;
    esac
    if [ -n "$pinned" ]; then
        pinned="$(printf '%s' "$pinned" | tr 'ABCDEF' 'abcdef')"
        is_sum "$pinned" || fail "\`$pinned\` isn't a SHA-256 checksum" "A checksum has 64 hexadecimal digits." "copy all of it"
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
            [ -n "${HOME:-}" ] || fail "there is no home folder" "HOME isn't set." "pass a folder with --prefix"
            prefix="$HOME/.local"
        fi
    fi
    case "$prefix" in
    *"$NEWLINE"*) fail "the prefix contains a line break" "The list of installed files can't contain such paths." "pass another folder with --prefix" ;;
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
    [ "$plain" != other ] || fail "\`$base\` isn't a URL that can be used" "Only https:// is allowed (http:// only for this machine)." \
        "set RALPH_DOWNLOAD_URL to an https:// URL, or unset it"
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
    *) fail "there is no archive for $machine" "There are releases for x86-64 and arm64." "build it from source: cargo install --locked --path crates/cli" ;;
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
    *) fail "there is no archive for $system" "There are releases for Linux and macOS." "use a Linux machine or a virtual machine" ;;
    esac
}

find_tools() {
    if has curl; then
        tool=curl
    elif has wget; then
        tool=wget
        # Other programs named wget have fewer options; busybox 1.35 crashes with `-T`.
        wget_options=''
        case "$(wget --version 2>/dev/null)" in
        "GNU Wget"*) wget_options='-T 60 -t 3 --max-redirect=5' ;;
        *) [ -z "${HTTPS_PROXY:-}${https_proxy:-}${ALL_PROXY:-}${all_proxy:-}" ] || say "note: this wget may not support proxies; curl does" ;;
        esac
        # wget reads only the lower-case names.
        [ -n "${https_proxy:-}" ] || [ -z "${HTTPS_PROXY:-${ALL_PROXY:-}}" ] || export https_proxy="${HTTPS_PROXY:-$ALL_PROXY}"
        [ -n "${no_proxy:-}" ] || [ -z "${NO_PROXY:-}" ] || export no_proxy="$NO_PROXY"
    else
        fail "neither curl nor wget is installed" "One of them downloads the archive." "install one ($(getting curl)), then try again"
    fi
    for hasher in sha256sum shasum openssl none; do
        if has "$hasher"; then break; fi
    done
    [ "$hasher" != none ] || fail "no program for SHA-256 checksums is installed" "The archive can't be checked without one." "install coreutils (sha256sum), then try again"
    for needed in tar gzip awk; do
        has "$needed" || fail "$needed isn't installed" "It unpacks the archive." "install $needed, then try again"
    done
}

# --- fetching and checking ----------------------------------------------------------------------------------------------

# Downloads $1 into the file $2; `-` is stdout. Only over TLS, except from this machine.
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

# Sets `archive`, `listed`, `target` and `version` from the release's list of checksums.
choose_list() {
    named=no
    [ -z "$version" ] || named=yes
    if [ "$named" = yes ]; then list="$base/download/v$version/SHA256SUMS"; else list="$base/latest/download/SHA256SUMS"; fi
}

# Says what would happen, without a connection.
plan_only() {
    choose_list
    say "would read $list for the version and its checksum"
    say "would fetch the first archive it names of: $targets"
    say "would check its checksum and install ralph${version:+ $version} below $prefix; nothing was changed"
}

choose_archive() {
    choose_list
    say "reading $list"
    sums="$(fetch "$list" -)" || fail "can't download the list of checksums" "The line above says why; the URL is $list." \
        "check the network, the proxy (HTTPS_PROXY) and the version, then try again"
    for target in $targets none; do
        line="$(printf '%s\n' "$sums" | awk -v end="-$target.tar.gz" '
            $2 ~ /^\*?ralph-[0-9]/ && substr($2, length($2) - length(end) + 1) == end { sub(/^\*/, "", $2); print $1, $2; exit }')"
        [ -z "$line" ] || break
    done
    if [ "$target" = none ]; then
        fail "the release has no archive for this machine" "Archives that would work: $targets." \
            "build it from source: cargo install --locked --path crates/cli"
    fi
    listed="${line%% *}" archive="${line#* }"
    is_sum "$listed" || fail "the list of checksums can't be read" "The checksum of $archive doesn't have 64 hexadecimal digits." "try again; nothing was changed"
    found="${archive#ralph-}" found="${found%-"$target".tar.gz}"
    case "$found" in
    '' | *[!0-9A-Za-z.-]*) fail "the list of checksums can't be read" "\`$archive\` has no version in its name." "try again; nothing was changed" ;;
    esac
    [ -z "$version" ] || [ "$version" = "$found" ] || fail "the list of checksums belongs to another version" "It lists $found instead of $version." "try again; nothing was changed"
    version="$found"
    [ -z "$pinned" ] || [ "$pinned" = "$listed" ] || fail "$archive doesn't have the checksum given with --sha256" \
        "The release lists $listed." "pass the checksum of this version, or select another version with --version"
}

# Checks what is already installed: another version of ours, or a different program named ralph.
check_installed() {
    list_file="$prefix/share/ralph/installed"
    before=''
    if [ -f "$list_file" ]; then
        before="$(sed -n '1s/^ralph \([^ ]*\).*/\1/p' "$list_file")"
        # The newest version must not be a downgrade: a mirror may be behind, or an attacker may offer a vulnerable version.
        if [ "$named" = no ] && is_older "$version" "$before"; then
            fail "ralph $before is in $prefix, and the newest release is $version" "An older version is installed only if you name it." \
                "check $base, or pass --version $version"
        fi
    elif [ -e "$prefix/bin/ralph" ] || [ -h "$prefix/bin/ralph" ]; then
        [ "$force" = yes ] || fail "$prefix/bin/ralph exists and wasn't installed by install.sh" \
            "It may be another program, or belong to a package manager." \
            "remove it, choose another folder with --prefix, or replace it with --force"
    fi
}

# --- installing ---------------------------------------------------------------------------------------------------------

make_staging() {
    umask 022
    for folder in "$prefix/share/ralph" "$prefix/bin"; do
        mkdir -p "$folder" 2>/dev/null || true
        [ -w "$folder" ] || fail "cannot write below $prefix" "You lack permission, or the disk is full." "pass a folder of yours with --prefix"
    done
    # Below the prefix, so on the same disk: after the checks, installing only renames files.
    staging="$(mktemp -d "$prefix/share/ralph/.install-XXXXXX")" || fail "cannot write below $prefix" "The line above says why." "free disk space, or pass another folder with --prefix"
    trap 'rm -rf "$staging"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

download() {
    say "fetching $base/download/v$version/$archive"
    fetch "$base/download/v$version/$archive" "$staging/archive" || fail "downloading $archive failed" \
        "The line above says why: the network, the server, or a full disk below $prefix." "try again; nothing was changed"
    found="$(sum_of "$staging/archive")"
    [ "$found" = "$listed" ] || fail "checksum mismatch for $archive: $found" \
        "It should be $listed; the download is incomplete or was modified." "try again, and don't use the downloaded file; nothing was changed"
    say "checksum OK: $found matches the release${pinned:+ and --sha256}"
}

strange() { fail "$archive contains unexpected files" "$1" "report it; nothing was changed"; }

# Unpacks the archive. It may contain only regular files and folders with plain names, below its own folder.
unpack() {
    folder="${archive%.tar.gz}"
    names="$(tar -tzf "$staging/archive")" || fail "$archive can't be read" "The line above says why." "try again; nothing was changed"
    if printf '%s\n' "$names" | awk -v folder="$folder/" 'index($0, folder) != 1 || /(^|\/)\.\.(\/|$)/ || /[^0-9A-Za-z._+@~\/-]/ { bad = 1 } END { exit !bad }'; then
        strange "A path leads outside, or contains unusual characters."
    fi
    if tar -tvzf "$staging/archive" | grep -qv '^[-d]'; then strange "Not all entries are regular files."; fi
    mkdir "$staging/tree"
    tar -xzof "$staging/archive" -C "$staging/tree" || fail "$archive can't be unpacked" "The line above says why; often the disk is full." \
        "free disk space below $prefix, then try again; nothing was changed"
    tree="$staging/tree/$folder"
    # The tar of busybox lists hard links as regular files.
    [ -z "$(find "$staging/tree" ! -type d ! \( -type f -links 1 \))" ] || strange "One entry is a link."
    # For root, tar applies the archive's permissions. Everyone may use these files; only their owner may change them.
    chmod -R u=rwX,go=rX "$staging/tree"
    said="$("$tree/bin/ralph" --version 2>&1)" || fail "the program doesn't start on this machine" "${said:-It prints nothing.}" \
        "report it with the output of \`uname -a\`; nothing was changed"
    [ "$said" = "ralph $version" ] || fail "the program isn't ralph $version" "It prints: $said" "report it; nothing was changed"
}

half_done() { fail "not all files could be installed below $prefix" "The line above says why." "fix that, then run install.sh again"; }

# Renames the files into place. The list goes first, so that uninstall.sh knows every file; the program goes last.
put_in_place() {
    files="$(cd "$tree" && find . -type f | sed 's/^\.\///' | sort)"
    in_the_way="$(printf '%s\n' "$files" | while IFS= read -r file; do if [ -d "$prefix/$file" ]; then printf '%s\n' "$prefix/$file"; fi; done | sed -n 1p)"
    [ -z "$in_the_way" ] || fail "$in_the_way is a folder" "A file with that name must go there." "move it away, or pass another folder with --prefix; nothing was changed"
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
    # Removes files of the previous version that this one doesn't have.
    printf '%s\n' "$old" | while IFS= read -r file; do
        case "$file" in
        '' | . | .. | /* | ../* | */../* | */..) continue ;;
        esac
        grep -qxF "$file" "$list_file" || rm -f "$prefix/$file"
    done
}

report_result() {
    case "$before" in
    '') say "ralph $version is in $prefix/bin" ;;
    "$version") say "ralph $version is in $prefix/bin, reinstalled" ;;
    *) say "ralph $version is in $prefix/bin, replacing $before" ;;
    esac
    for wanted in git bwrap; do
        has "$wanted" && continue
        case "$wanted" in
        git) say "git is missing, and ralph needs it: install it ($(getting git))" ;;
        bwrap) [ "$system" != Linux ] || say "bubblewrap is missing; it's the strongest sandbox for agents: install it ($(getting bubblewrap))" ;;
        esac
    done
    case ":$PATH:" in
    *":$prefix/bin:"*)
        first="$(command -v ralph || true)"
        [ "$first" = "$prefix/bin/ralph" ] || [ -z "$first" ] || say "note: \`ralph\` is $first, which comes before $prefix/bin on your PATH"
        ;;
    *)
        say "$prefix/bin is not on your PATH; add it with:"
        # shellcheck disable=SC2016 # The variable is for the user's shell.
        case "${SHELL:-}" in
        */fish) printf '  fish_add_path "%s/bin"\n' "$prefix" >&2 ;;
        */zsh) printf '  echo '\''export PATH="%s/bin:$PATH"'\'' >> ~/.zshrc && . ~/.zshrc\n' "$prefix" >&2 ;;
        *) printf '  echo '\''export PATH="%s/bin:$PATH"'\'' >> ~/.profile && . ~/.profile\n' "$prefix" >&2 ;;
        esac
        ;;
    esac
    say "next: run \`ralph demo\` to see a complete run without an account, or in your repo: ralph run \"Fix the failing tests\""
    say "to uninstall: sh $prefix/share/ralph/uninstall.sh"
}

# Called in the last line, so that a partly downloaded script does nothing.
main() {
    read_arguments "$@"
    find_prefix
    find_base
    find_targets
    find_tools
    if [ "$dry_run" = yes ]; then
        plan_only
        return 0
    fi
    choose_archive
    check_installed
    make_staging
    download
    unpack
    put_in_place
    report_result
}

main "$@"
