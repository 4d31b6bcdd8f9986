# Sourced by dev: formatting, layers, unwired tests, stray paths, clang-tidy.

# Ours, whether committed yet or not; in an unpacked archive, without git, everything.
our_files() {
  local pattern
  if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard -- "$@" |
      while read -r file; do [[ ! -f $file ]] || echo "$file"; done
  else
    for pattern in "${@:-*}"; do
      find . -path ./build -prune -o -path ./.git -prune -o -type f -path "./$pattern" -print
    done | sed 's|^\./||'
  fi
}

check_format() {
  our_files '*.h' '*.cc' | xargs -r clang-format-14 "${@:---dry-run}" -Werror
}

# Every include of ours is allowed by cmake/layers.txt.
check_dependencies() {
  local file folder allowed include layer status=0
  local -A may_include=()
  while IFS=: read -r folder allowed; do
    may_include[$folder]=$allowed
  done < <(grep '^[a-z]' cmake/layers.txt)
  while read -r file; do
    folder=${file%/*}
    until [[ -v may_include[$folder] || $folder != */* ]]; do folder=${folder%/*}; done
    [[ -v may_include[$folder] ]] || {
      echo "$file: say in cmake/layers.txt what its folder may include"
      status=1
      continue
    }
    allowed=${may_include[$folder]}
    [[ $allowed != ' *' ]] || continue
    while read -r include; do
      [[ $include == baton/* || $include != */* ]] && continue
      for layer in $folder $allowed; do
        [[ $include != "${layer#src/}"/* ]] || continue 2
      done
      echo "$file: must not include $include (may: $allowed)"
      status=1
    done < <(sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"([^"]+)".*/\1/p' "$file")
  done < <(our_files 'src/*.h' 'src/*.cc' 'apps/*.h' 'apps/*.cc')

  # The public headers are the manual: the standard library and each other, nothing else. The one
  # for C has C's.
  local public
  mapfile -t public < <(our_files 'include/*.h')
  if grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*("[^b]|"b[^a]|<[^>]*[./])' \
    "${public[@]}" /dev/null |
    grep -vE '^include/baton/baton\.h:[0-9]+:#include <std(def|int)\.h>$'; then
    echo "a public header includes more than the standard library and baton/"
    status=1
  fi
  return $status
}

# A test that no CMakeLists.txt names would never run, and nobody would notice.
check_tests_are_wired() {
  local file folder status=0
  while read -r file; do
    folder=${file%/*}
    while [[ ! -f $folder/CMakeLists.txt && $folder == */* ]]; do folder=${folder%/*}; done
    # Not through a pipe: grep -q would end it early, and sed with it.
    if ! grep -qwF -- "${file##*/}" <<<"$(sed 's/#.*//' "$folder/CMakeLists.txt")"; then
      echo "$file: no CMakeLists.txt builds it"
      status=1
    fi
  done < <(our_files 'tests/*_test.cc')
  while read -r file; do
    file=${file%.py}
    if ! grep -qwF -- "${file##*/}" "${file%/*}/CMakeLists.txt"; then
      echo "$file.py: no CMakeLists.txt runs it"
      status=1
    fi
  done < <(our_files 'tests/*/test_*.py')
  return $status
}

# A case that does not apply to a store says so with GTEST_SKIP: else it seems to have passed.
check_skips() {
  local files
  mapfile -t files < <(our_files 'tests/*_test.cc' 'tests/conformance/*.cc')
  ! grep -nE 'if \(!(can|can_[a-z_]+)(\([^;]*)?\) return;' "${files[@]}" /dev/null
}

# Paths of somebody's machine are of no use to anybody else.
check_paths() {
  local files here=()
  mapfile -t files < <(our_files)
  [[ $PWD != /*/* ]] || here=(-e "$PWD([^[:alnum:]]|\$)")
  ! grep -nIE -e '(^|[^[:alnum:]_./-])/(home|root|work|Users)/[[:alnum:]]' "${here[@]}" \
    "${files[@]}" /dev/null
}

# The help of dev fits a terminal.
check_help() {
  ! usage | grep -nE '^.{81,}'
}

check_tidy() {
  need "${tidy_packages[@]}" "${build_packages[@]}"
  cmake --preset tidy >/dev/null || return 1
  phase "generated headers"
  ninja -C build/tidy -t targets all | sed -n 's/^\(generated\/.*\): CUSTOM_COMMAND$/\1/p' |
    xargs ninja -C build/tidy >/dev/null || return 1
  phase "clang-tidy"
  our_files 'src/*.cc' 'apps/*.cc' 'tests/*.cc' | xargs -r -P "$(nproc)" -n 1 \
    clang-tidy-14 -p build/tidy --quiet --extra-arg=-Wno-unknown-warning-option 2>&1 |
    awk '!/warnings? generated/'
}

quick_checks() {
  local check status=0
  need "${format_packages[@]}"
  for check in check_format check_dependencies check_tests_are_wired check_skips \
    check_paths check_help; do
    phase "${check//_/ }"
    "$check" || {
      echo "    failed: ${check//_/ }"
      status=1
    }
  done
  return $status
}

cmd_check() {
  local status=0
  case ${1:-} in
    --quick) quick_checks || status=1 ;;
    --tidy) check_tidy || status=1 ;;
    --fix)
      need "${format_packages[@]}"
      check_format -i || status=1
      ;;
    '')
      quick_checks || status=1
      check_tidy || status=1
      ;;
    *) die "check does not know $1" ;;
  esac
  [[ $status -eq 0 ]] || die "check failed"
  phase "all is well"
}
