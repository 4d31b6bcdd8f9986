# Sourced by dev: build, demo, bench, fuzz.

# Lets ccache reuse what another clone compiled: it compares paths relative to the clone, and
# accepts precompiled headers, whose contents it compares itself.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_COMPILERCHECK=content
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros,include_file_mtime,include_file_ctime}

# configure PRESET [CMAKE OPTION...]
configure() {
  local log
  case $1 in
    release | package | debug | asan | tsan) need "${build_packages[@]}" ;;
    clang) need "${build_packages[@]}" "${clang_packages[@]}" ;;
    *) die "no preset $1" ;;
  esac
  log=$(cmake --preset "$@" 2>&1) || {
    echo "$log"
    return 1
  }
}

# build PRESET [--define VAR=VALUE] [TARGET...]
build() {
  local preset=$1 options=()
  shift
  if [[ ${1:-} == --define ]]; then
    options+=("-D$2")
    shift 2
  fi
  phase "building $preset"
  configure "$preset" "${options[@]}" || return 1
  cmake --build --preset "$preset" ${1:+--target "$@"}
}

cmd_build() {
  local preset=release target=programs
  while [[ $# -gt 0 ]]; do
    case $1 in
      --tests) target=all ;;
      -*) die "build does not know $1" ;;
      *) preset=$1 ;;
    esac
    shift
  done
  build "$preset" "$target"
  phase "built: build/$preset/bin"
}

cmd_demo() {
  [[ $# -le 1 ]] || die "demo takes one word at most: ./dev demo [documents|locks|warehouse]"
  case ${1:-documents} in
    documents)
      build release baton-demo-documents documents baton
      exec build/release/bin/baton-demo-documents
      ;;
    locks)
      build release baton-demo
      exec build/release/bin/baton-demo
      ;;
    warehouse)
      build release baton-demo-warehouse warehouse
      exec build/release/bin/baton-demo-warehouse
      ;;
    *) die "there is no demo $1: ./dev demo [documents|locks|warehouse]" ;;
  esac
}

cmd_bench() {
  need "${bench_packages[@]}" "${test_packages[@]}"
  if [[ ${1:-stores} == stores ]]; then need_kube || die "there is no kube-apiserver"; fi
  if [[ $# -gt 0 ]]; then
    local name=$1
    shift
    build release --define BATON_BUILD_BENCH=ON "bench_$name"
    exec "build/release/bin/bench_$name" "$@"
  fi
  build release --define BATON_BUILD_BENCH=ON
  local program
  for program in build/release/bin/bench_*; do
    [[ -x $program ]] || die "there are no benchmarks"
    phase "${program##*/}"
    "$program"
  done
}

# What a run finds new is kept in build/fuzz, and an input that breaks a promise beside it.
cmd_fuzz() {
  local seconds=${1:-30} program name
  build clang fuzz_all
  for program in build/clang/bin/fuzz_*; do
    name=${program##*/fuzz_}
    phase "fuzzing $name for $seconds s"
    mkdir -p "build/fuzz/$name"
    "$program" -max_total_time="$seconds" -max_len=262144 -verbosity=0 -print_funcs=0 \
      -print_final_stats=1 -artifact_prefix="build/fuzz/$name-" \
      "build/fuzz/$name" "fuzz/corpus/$name" 2>&1 |
      sed '/Recommended dictionary/,/End of recommended dictionary/d'
  done
}
