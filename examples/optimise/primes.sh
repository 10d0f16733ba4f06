#!/bin/sh
# Counts the primes below 400, and the divisions that it takes.
primes=0
divisions=0
n=2
while [ "$n" -lt 400 ]; do
    d=2
    prime=yes
    while [ "$d" -lt "$n" ]; do
        divisions=$((divisions + 1))
        if [ $((n % d)) -eq 0 ]; then
            prime=no
        fi
        d=$((d + 1))
    done
    if [ "$prime" = yes ]; then
        primes=$((primes + 1))
    fi
    n=$((n + 1))
done
echo "$primes primes"
echo "divisions: $divisions"
