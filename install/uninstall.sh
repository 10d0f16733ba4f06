#!/bin/sh
# Removes what install.sh installed, and lists what it keeps.
#
#   sh uninstall.sh [--prefix DIR] [--purge] [--dry-run]
#
#   --prefix DIR   uninstall from this folder (default: where this script is installed, else ~/.local, for root /usr/local)
#   --purge        also remove your runs (with results that you haven't taken over) and your configuration
#   --dry-run      print what would be done, change nothing
#
# Kept without --purge: ~/.local/state/ralph (runs), ~/.config/ralph (configuration). Always kept: `.ralph/` in
# your repos, and the branches and refs of runs.
set -eu
# It changes what `cd` does.
unset CDPATH

say() { printf '%s\n' "uninstall: $*" >&2; }

fail() {
    printf 'error: %s\n  %s\nnext: %s\n' "$1" "$2" "$3" >&2
    exit 1
}

read_arguments() {
    prefix='' purge=no dry_run=no
    while [ $# -gt 0 ]; do
        case "$1" in
        --prefix)
            [ -n "${2:-}" ] || fail "--prefix needs a value" "It comes last on the command line." "run \`uninstall.sh --help\`"
            prefix="$2"
            shift
            ;;
        --prefix=*) prefix="${1#*=}" ;;
        --purge) purge=yes ;;
        --dry-run) dry_run=yes ;;
        -h | --help)
            sed -n '2,11s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
        *) fail "unknown argument \`$1\`" "uninstall.sh has no such option." "run \`uninstall.sh --help\`" ;;
        esac
        shift
    done
}

find_prefix() {
    if [ -z "${HOME:-}" ] && command -v getent >/dev/null 2>&1; then HOME="$(getent passwd "$(id -u)" | cut -d: -f6)"; fi
    if [ -z "$prefix" ]; then
        here="$(cd "$(dirname "$0")" 2>/dev/null && pwd -P)" || here=''
        case "$here" in
        */share/ralph) prefix="${here%/share/ralph}" ;;
        *) if [ "$(id -u)" -eq 0 ]; then prefix=/usr/local; else prefix="${HOME:?}/.local"; fi ;;
        esac
    fi
    case "$prefix" in
    /*) ;;
    "~"/*) prefix="${HOME:-}/${prefix#??}" ;;
    *) prefix="$(pwd)/$prefix" ;;
    esac
    prefix="${prefix%/}"
    list="$prefix/share/ralph/installed"
}

# Runs or prints a command, on one line wherever it is called.
act() { if [ "$dry_run" = yes ]; then say "would run: $(IFS=' ' && printf '%s' "$*")"; else "$@"; fi; }

# An active run would lose its program, and with --purge its record.
refuse_during_runs() {
    command -v "$prefix/bin/ralph" >/dev/null 2>&1 || return 0
    alive="$("$prefix/bin/ralph" list --all --json 2>/dev/null | tr '{' '\n' | grep -c '"driven":true' || true)"
    [ "${alive:-0}" -eq 0 ] || fail "active runs: $alive" "They would lose their program or record." \
        "list them with \`ralph list --all\`, end them with \`ralph cancel\`, then try again"
}

remove_files() {
    # A copy, because the list contains itself.
    files="$(sed 1d "$list")"
    version="$(sed -n '1s/^ralph \([^ ]*\).*/\1/p' "$list")"
    gone=0
    old_ifs="$IFS"
    IFS='
'
    set -f
    for file in $files; do
        case "$file" in
        '' | . | .. | /* | ../* | */../* | */..) continue ;;
        esac
        [ -e "$prefix/$file" ] || [ -h "$prefix/$file" ] || continue
        act rm -f "$prefix/$file"
        gone=$((gone + 1))
        # Removes folders that are now empty, except those that every prefix has.
        folder="${file%/*}"
        while [ "$dry_run" = no ] && [ "$folder" != share ] && [ "$folder" != bin ] && rmdir "$prefix/$folder" 2>/dev/null; do
            case "$folder" in */*) folder="${folder%/*}" ;; *) break ;; esac
        done
    done
    set +f
    IFS="$old_ifs"
    if [ "$dry_run" = no ]; then
        rm -rf "$prefix/share/ralph"/.install-* "$prefix/share/ralph/.lock"
        rmdir "$prefix/share/ralph" 2>/dev/null || true
        say "removed ralph $version: $gone files below $prefix"
    fi
}

# The user's own folders, resolved as ralph does.
own_folders() {
    case "${XDG_STATE_HOME:-}" in
    /*) printf '%s\n' "$XDG_STATE_HOME/ralph" ;;
    *) printf '%s\n' "${HOME:?}/.local/state/ralph" ;;
    esac
    case "${XDG_CONFIG_HOME:-}" in
    /*) printf '%s\n' "$XDG_CONFIG_HOME/ralph" ;;
    *) printf '%s\n' "${HOME:?}/.config/ralph" ;;
    esac
}

user_files() {
    own_folders | while IFS= read -r folder; do
        [ -e "$folder" ] || [ -h "$folder" ] || continue
        size="$(du -sh "$folder" 2>/dev/null | cut -f1)"
        if [ "$purge" = yes ]; then
            # Folders of clones and worktrees may be read-only to their owner.
            [ "$dry_run" = yes ] || [ -h "$folder" ] || chmod -R u+rwX "$folder" 2>/dev/null || true
            act rm -rf "$folder"
            [ "$dry_run" = yes ] || say "removed $folder (${size:-?})"
        else
            say "left: $folder (${size:-?}); --purge removes it"
        fi
    done
    say "left: \`.ralph/\` in your repos, and branches and refs of runs there (\`git for-each-ref refs/ralph\`)"
}

main() {
    read_arguments "$@"
    find_prefix
    if [ ! -f "$list" ]; then
        if [ "$purge" = yes ] && [ ! -e "$prefix/bin/ralph" ]; then
            say "no ralph below $prefix"
            user_files
            return 0
        fi
        fail "install.sh installed nothing below $prefix" "There is no $list." \
            "pass its folder with --prefix, or uninstall it with apt, brew, npm, pipx, uv or cargo"
    fi
    [ -w "$prefix/bin" ] || [ "$dry_run" = yes ] || fail "cannot remove files below $prefix" "You lack permission." "run it as the user who installed it (\`sudo sh $0\`)"
    refuse_during_runs
    remove_files
    user_files
}

main "$@"
