#!/bin/sh
# Runs cmocka test programs one after the other and sums up:  tests/run.sh PROGRAM...
# Output of a program is shown when one of its tests fails. A program that dies counts as a failure.
# The last line is "N passed, N failed, N skipped"; the exit code is 1 if anything failed.
passed=0 failed=0 skipped=0
log=$(mktemp) || exit 4
trap 'rm -f "$log"' EXIT
for program in "$@"; do
  start=$(date +%s%N)
  CMOCKA_MESSAGE_OUTPUT=TAP "$program" >"$log" 2>&1
  status=$?
  took=$(( ($(date +%s%N) - start) / 100000000 ))
  # TAP: "ok 1 - name", "not ok 1 - name", "not ok 1 # SKIP name" (cmocka writes "not ok" there too)
  skip=$(grep -c 'ok [0-9]* # SKIP' "$log")
  pass=$(grep -c '^ok [0-9]* - ' "$log")
  fail=$(grep -c '^not ok [0-9]* - ' "$log")
  if [ $status -ne 0 ] && [ "$fail" -eq 0 ]; then
    fail=1
    echo "$program ended with status $status before its tests were done" >>"$log"
  elif [ $((pass + fail + skip)) -eq 0 ]; then
    fail=1
    echo "$program ran no test" >>"$log"
  fi
  printf '%-24s %3d passed, %d failed, %d skipped  %d.%d s\n' "${program##*/}" "$pass" "$fail" \
    "$skip" $((took / 10)) $((took % 10))
  if [ "$fail" -ne 0 ]; then
    cat "$log"
  else
    sed -n 's/^\(not \)\{0,1\}ok [0-9]* # SKIP/    skipped:/p' "$log"
  fi
  passed=$((passed + pass)) failed=$((failed + fail)) skipped=$((skipped + skip))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
