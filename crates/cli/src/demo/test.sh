# Checks text.sh. Prints TAP, one line per case; exits 1 if a case fails.
. ./text.sh
passed=0
failed=0
check() {
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
        echo "ok $((passed + failed)) - $1"
    else
        failed=$((failed + 1))
        echo "not ok $((passed + failed)) - $1"
        echo "#   wanted '$3', got '$2'"
    fi
}
check "slug lowers" "$(slug 'Hello World')" "hello-world"
check "slug drops signs" "$(slug '  What, again?! ')" "what-again"
check "title" "$(title 'the quick fox')" "The Quick Fox"
check "title of one" "$(title 'x')" "X"
check "count" "$(count_words 'one two  three')" "3"
check "count of nothing" "$(count_words '')" "0"
echo "# pass $passed"
echo "# fail $failed"
[ "$failed" -eq 0 ]
