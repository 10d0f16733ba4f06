#!/bin/sh
# `add` must work, and `list` as soon as todo.sh knows it. A command that it doesn't know yet exits with 2.
set -u
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
todo=$(pwd)/todo.sh
cd "$dir" || exit 1
sh "$todo" add 'buy milk' || { echo "add fails"; exit 1; }
grep -qx 'buy milk' todo.txt || { echo "add does not write to todo.txt"; exit 1; }
if out=$(sh "$todo" list 2>/dev/null); then
    [ "$out" = '1. buy milk' ] || { echo "list prints '$out'"; exit 1; }
fi
echo ok
