# Small text functions.

# slug TEXT: lower case, words joined by single dashes, nothing else.
slug() {
    printf '%s\n' "$1"
}

# title TEXT: the first letter of each word in upper case.
title() {
    printf '%s\n' "$1"
}

# count_words TEXT: the number of words.
count_words() {
    printf '%s\n' 0
}
