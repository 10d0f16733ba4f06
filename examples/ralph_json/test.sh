#!/bin/sh
# test.sh words|missing: what count.sh prints for words.txt, or whether it refuses a missing file.
case "${1:-}" in
words) ./count.sh words.txt ;;
missing)
    message=$(./count.sh missing.txt 2>&1 >/dev/null)
    [ $? -eq 2 ] && printf '%s\n' "$message" | grep -q missing.txt
    ;;
*) exit 2 ;;
esac
