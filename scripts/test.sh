# Sourced by dev: builds the tests, runs them and counts.

# Adds up one ctest run. A GoogleTest program counts by its cases; a program that left no report
# (it crashed, or is no GoogleTest) counts as one case, and so does one that failed although all
# its cases passed, as after a leak.
count_results() {
  local reports=$1 junit=$2 files
  mapfile -t files < <(find "$reports" -name '*.xml')
  awk -v junit="$junit" '
    function attribute(name) {
      if (!match($0, " " name "=\"[^\"]*\"")) return ""
      return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
    }
    FILENAME != junit && /^<testsuites / {
      program = FILENAME; sub(/.*\//, "", program); sub(/\.xml$/, "", program)
      reported[program] = 1
      cases[program] = attribute("tests") - attribute("disabled")
      failures[program] = attribute("failures") + attribute("errors")
    }
    FILENAME != junit && /^  <testsuite name="[^"]*" tests="/ { skipped[program] += attribute("skipped") }
    FILENAME == junit && /^[ \t]*<testcase / {
      program = attribute("name"); status = attribute("status")
      if (status == "disabled") next
      if (program in reported) {
        bad = failures[program]
        if (status != "run" && bad == 0) bad = 1
        good = cases[program] - failures[program] - skipped[program]
        left += skipped[program]
      } else {
        bad = status != "run"; good = !bad
      }
      passed += good; failed += bad
    }
    END { print passed + 0, failed + 0, left + 0 }
  ' "${files[@]}" "$junit"
}

passed=0
failed=0

# So long every phase took, and the longest programs of every preset that was tested. Its table is
# what CONTRIBUTING.md shows.
where_the_time_went() {
  local i begin end preset
  phase "where the time went"
  for ((i = 0; i + 1 < ${#phases[@]}; i++)); do
    begin=${phases[i]%% *} end=${phases[i + 1]%% *}
    [[ $((end - begin)) -lt 5 ]] || printf '%6d s  %s\n' $((end - begin)) "${phases[i]#* }"
  done
  for preset in "$@"; do
    [[ -f build/$preset/ctest.xml ]] || continue
    echo "    the longest in $preset, in seconds:"
    sed -nE 's/.*<testcase name="([^"]*)".* time="([0-9]+)[^"]*".*/\2 \1/p' \
      "build/$preset/ctest.xml" | sort -rn | sed -n '1,10s/^/        /p' # head would end sort by a signal
  done
}

# run_tests PRESET [CTEST OPTION...]
run_tests() {
  local preset=$1 reports=$PWD/build/$1/reports junit=$PWD/build/$1/ctest.xml wrap=() result
  shift
  phase "testing $preset"
  rm -rf "$reports" "$junit"
  mkdir -p "$reports"
  # Some kernels randomise addresses more than the thread sanitizer's shadow memory allows.
  if [[ $preset == tsan ]] && setarch -R true 2>/dev/null; then wrap=(setarch -R); fi
  # Tests mostly wait. Those of the sanitizers also compute: with more of them at once, calls to
  # a store take longer than the leases that they ask for.
  local jobs=$((4 * $(nproc)))
  [[ $preset == release ]] || jobs=$((2 * $(nproc)))
  ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1} \
    UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1} \
    TSAN_OPTIONS=${TSAN_OPTIONS:-second_deadlock_stack=1} \
    "${wrap[@]}" ctest --test-dir "build/$preset" -j"${BATON_TEST_JOBS:-$jobs}" \
    --output-on-failure --output-junit "$junit" "$@" || true
  [[ -f $junit ]] || { # ctest itself failed
    failed=$((failed + 1))
    return
  }
  read -r -a result < <(count_results "$reports" "$junit")
  passed=$((passed + result[0]))
  failed=$((failed + result[1]))
  [[ ${result[2]} -eq 0 ]] || echo "    ${result[2]} cases in $preset were skipped"
  [[ $((result[0] + result[1])) -ne 0 ]] || echo "    no test in $preset matches"
}

# selected_tests PRESET [CTEST OPTION...]: the names of the tests that ctest would run.
selected_tests() {
  ctest --test-dir "build/$1" -N "${@:2}" | sed -n 's/^ *Test *#[0-9]*: //p'
}

# needs_label PRESET LABEL [CTEST OPTION...]: whether a selected test has the label.
needs_label() {
  [[ -n $(selected_tests "$1" -L "^$2\$" "${@:3}") ]]
}

# build_tests PRESET LABELS [CTEST OPTION...]: builds everything, or with LABELS or a filter only
# the selected test programs. A test that is not a target of its own needs everything.
build_tests() {
  local preset=$1 labels=$2 only=()
  shift 2
  if [[ -z $labels && $# -eq 0 ]]; then
    build "$preset"
    return
  fi
  configure "$preset" || return 1
  mapfile -t only < <(selected_tests "$preset" ${labels:+-L "$labels"} "$@" |
    sed 's/\.[0-9]*$//' | sort -u) # NAME.2 is a shard of the program NAME
  [[ ${#only[@]} -gt 0 ]] || return 0
  if ! ninja -C "build/$preset" -t query "${only[@]}" >/dev/null 2>&1; then only=(); fi
  build "$preset" "${only[@]}"
}

sanitized_labels='^(unit|conformance)$' # what also runs under the sanitizers

# Where the servers of the tests keep their data: $TMPDIR, or in memory. Eight tests at once make
# hundreds of flushes a second, and a disk that is slow with them looks like a server that hangs.
test_directory() {
  local free
  free=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1) || free=0
  if [[ -z ${TMPDIR:-} && ${free:-0} -gt $((4 * 1024 * 1024)) && -w /dev/shm ]]; then
    echo /dev/shm
  else
    echo "${TMPDIR:-/tmp}"
  fi
}

begin_test_run() {
  need "${build_packages[@]}" "${test_packages[@]}" "${format_packages[@]}"
  test_tmp=$(mktemp -d "$(test_directory)/baton-test.XXXXXX")
  chmod 711 "$test_tmp" # the database runs as another user below it
  trap clean_up_tests EXIT
  trap 'exit 130' INT TERM HUP
  export BATON_TEST_TMP=$test_tmp
}

# start_servers PRESET [CTEST OPTION...]: those that the selected tests share. If one does not start,
# the tests that need it say so themselves.
start_servers() {
  if needs_label "$1" postgres "${@:2}" && ! start_postgres; then
    failed=$((failed + 1))
  fi
  if needs_label "$1" kubernetes "${@:2}" && ! need_kube; then
    failed=$((failed + 1))
  fi
}

cmd_test() {
  local preset=release sanitizers=(asan tsan) select=() without=()
  while [[ $# -gt 0 ]]; do
    case $1 in
      --quick) sanitizers=() ;;
      --preset) preset=${2:?} sanitizers=() && shift ;;
      --filter) select+=(-R "${2:?}") && shift ;;
      --without) without+=("${2:?}") && shift ;;
      *) die "test does not know $1" ;;
    esac
    shift
  done
  if [[ ${#without[@]} -gt 0 ]]; then
    select+=(-LE "^($(IFS='|' && echo "${without[*]}"))\$")
  fi

  begin_test_run

  local sanitizer
  if build_tests "$preset" '' "${select[@]}"; then
    start_servers "$preset" "${select[@]}"
    run_tests "$preset" "${select[@]}"
    for sanitizer in "${sanitizers[@]}"; do
      if build_tests "$sanitizer" "$sanitized_labels" "${select[@]}"; then
        run_tests "$sanitizer" -L "$sanitized_labels" "${select[@]}"
      else
        failed=$((failed + 1))
      fi
    done
  else
    failed=$((failed + 1))
  fi
  quick_checks || failed=$((failed + 1))

  where_the_time_went "$preset" "${sanitizers[@]}"
  phase "done"
  if [[ $((passed + failed)) -eq 0 ]]; then
    echo "no test ran, which is no success"
    failed=1
  fi
  [[ ${#without[@]} -eq 0 ]] || echo "left out: ${without[*]}"
  echo "$passed passed, $failed failed"
  [[ $failed -eq 0 ]]
}
