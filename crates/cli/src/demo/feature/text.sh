# Small text functions.

# lower TEXT: all letters in lower case.
lower() {
    printf '%s\n' "$1" | tr 'A-Z' 'a-z'
}
