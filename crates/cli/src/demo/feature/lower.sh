check "lower" "$(lower 'Hello World')" "hello world"
check "lower of nothing" "$(lower '')" ""
