#!/bin/sh
# Every command that todo.sh knows must do what the PRD says. A command that it does not know yet exits with 2.
set -u
sh -n todo.sh || exit 1
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
todo=$(pwd)/todo.sh
cd "$dir" || exit 1
if sh "$todo" add 'buy milk' 2>/dev/null; then
    grep -qx 'buy milk' todo.txt || { echo "add does not write to todo.txt"; exit 1; }
    if out=$(sh "$todo" list 2>/dev/null); then
        [ "$out" = '1. buy milk' ] || { echo "list prints '$out'"; exit 1; }
    fi
fi
echo ok
