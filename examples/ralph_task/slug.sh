#!/bin/sh
# slug.sh TITLE: the title as part of a web address.
printf '%s\n' "$1"
