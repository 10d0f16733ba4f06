#!/bin/sh
# todo.sh add TEXT | list: a list of things to do in todo.txt.
echo "usage: todo.sh add TEXT | list" >&2
exit 2
