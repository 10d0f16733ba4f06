# Runs the cases in tests/*.sh. Prints TAP, one line per case; exits 1 if a case fails.
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
for file in tests/*.sh; do
    . "./$file"
done
echo "# pass $passed"
echo "# fail $failed"
[ "$failed" -eq 0 ]
