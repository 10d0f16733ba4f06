#!/bin/sh
out="$(sh primes.sh)" || exit 1
echo "$out"
case "$out" in
"78 primes"*) ;;
*) exit 1 ;;
esac
