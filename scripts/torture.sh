# Sourced by dev: random tests for as long as one likes, and the list of all promises.

# What takes a seed ($BATON_TEST_SEED, tests/support/seed.h) has the label `torture`. A random run of
# another part is added by that label alone.
cmd_torture() {
  case ${1:-} in
    events | documents)
      "torture_$1" "${@:2}"
      return
      ;;
  esac
  local minutes=10 seed=$((RANDOM * 32768 + RANDOM)) select=(-L '^torture$') until
  while [[ $# -gt 0 ]]; do
    case $1 in
      --minutes) minutes=${2:?} && shift ;;
      --seed) seed=${2:?} && shift ;;
      --filter) select+=(-R "${2:?}") && shift ;;
      *) die "torture does not know $1" ;;
    esac
    shift
  done
  [[ $minutes =~ ^[0-9]+$ && $seed =~ ^[0-9]{1,9}$ ]] || die "--minutes and --seed take numbers"

  begin_test_run
  build_tests release '' "${select[@]}" || die "the tests do not build"
  start_servers release "${select[@]}"
  until=$((SECONDS + 60 * minutes))
  while :; do
    phase "seed $seed"
    export BATON_TEST_SEED=$seed
    run_tests release "${select[@]}"
    [[ $failed -eq 0 && $passed -gt 0 ]] || break
    seed=$((seed + 1))
    [[ $SECONDS -lt $until ]] || break
  done

  phase "done"
  echo "$passed passed, $failed failed"
  [[ $passed -gt 0 ]] || echo "no test ran, which is no success"
  if [[ $failed -gt 0 ]]; then
    echo "once more: ./dev torture --minutes 0 --seed $seed --filter PROGRAM"
  fi
  [[ $failed -eq 0 && $passed -gt 0 ]]
}

# One system of events under faults in random order, for as long as one likes. It starts its own
# servers.
torture_events() {
  local minutes=10 seed=$((RANDOM * 32768 + RANDOM))
  while [[ $# -gt 0 ]]; do
    case $1 in
      --minutes) minutes=${2:?} && shift ;;
      --seed) seed=${2:?} && shift ;;
      *) die "torture events does not know $1" ;;
    esac
    shift
  done
  [[ $minutes =~ ^[0-9]{1,5}$ && $seed =~ ^[0-9]{1,9}$ ]] || die "--minutes and --seed take numbers"

  begin_test_run
  build release torture_events || die "torture_events does not build"
  phase "events, from seed $seed on"
  build/release/bin/torture_events "seed=$seed" "minutes=$minutes"
}

# The document platform, with a kill every second, for as long as one likes. It starts its own
# servers.
torture_documents() {
  local minutes=10 seed=$((RANDOM * 32768 + RANDOM)) on=both
  while [[ $# -gt 0 ]]; do
    case $1 in
      --minutes) minutes=${2:?} && shift ;;
      --seed) seed=${2:?} && shift ;;
      --on) on=${2:?} && shift ;;
      *) die "torture documents does not know $1" ;;
    esac
    shift
  done
  [[ $minutes =~ ^[0-9]{1,5}$ && $seed =~ ^[0-9]{1,9}$ ]] || die "--minutes and --seed take numbers"
  [[ $on =~ ^(files|servers|both)$ ]] || die "--on takes files, servers or both"

  begin_test_run
  build release torture_documents || die "torture_documents does not build"
  phase "documents, from seed $seed on"
  build/release/bin/torture_documents "seed=$seed" "minutes=$minutes" "on=$on"
}

# The name of a test is its promise. Read from the sources, so that no list can be out of date.
cmd_promises() {
  { promises_in_cc && promises_in_python; } | grep -E -- "${1:-}"
}

promises_in_cc() {
  our_files 'tests/*_test.cc' | sort | while read -r file; do
    awk -v file="$file" '
      /^(TYPED_)?TEST(_F|_P)?\(/ { text = ""; open = 1 }
      open { text = text $0 }
      open && /\)/ {
        open = 0
        gsub(/^[A-Z_]+\([ ]*|\).*/, "", text)
        split(text, part, /, */)
        gsub(/_/, " ", part[2])
        printf "%s: %s  (%s)\n", part[1], part[2], file
      }' "$file"
  done
}

promises_in_python() {
  our_files 'tests/*/test_*.py' | sort | while read -r file; do
    awk -v file="$file" '
      /^class / { suite = $2; sub(/\(.*/, "", suite) }
      /^    def test_/ {
        name = $2; sub(/^test_/, "", name); sub(/\(.*/, "", name); gsub(/_/, " ", name)
        printf "%s: %s  (%s)\n", suite, name, file
      }' "$file"
  done
}
