#!/bin/sh
# test.sh [lower|dashes]: one check, or all of them. Says what differs; exits with 1 where anything does.
failed=0
check() {
    got=$(./slug.sh "$1")
    if [ "$got" != "$2" ]; then
        echo "slug of '$1': wanted '$2', got '$got'"
        failed=1
    fi
}
case "${1:-all}" in lower | all) check 'Hello' 'hello' ;; esac
case "${1:-all}" in dashes | all) check 'Hello  World' 'hello-world' && check 'A b: C!' 'a-b-c' ;; esac
exit $failed
