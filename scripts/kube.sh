# Sourced by dev: the kube-apiserver for the tests.

kube_version=1.20.2-2 # what Debian 12's source package makes, and how often we changed how

# Sets kube_apiserver to the one at hand; false if there is none yet.
find_kube() {
  local cached=${XDG_CACHE_HOME:-$HOME/.cache}/baton/kube-apiserver-$kube_version
  local found=(${BATON_TEST_KUBE_APISERVER:+"$BATON_TEST_KUBE_APISERVER"}
    ${KUBEBUILDER_ASSETS:+"$KUBEBUILDER_ASSETS/kube-apiserver"}
    "$(command -v kube-apiserver || true)" "$cached")
  for kube_apiserver in "${found[@]}"; do
    [[ ! -x $kube_apiserver ]] || return 0
  done
  return 1 # and the last one is where it shall be
}

need_kube() {
  if ! find_kube; then
    need "${kube_packages[@]}"
    phase "building kube-apiserver $kube_version for the tests, once"
    scripts/build_kube_apiserver "$kube_apiserver" || return 1
  fi
  export BATON_TEST_KUBE_APISERVER=$kube_apiserver
}

cmd_kube() {
  need_kube || die "there is no kube-apiserver"
  phase "kube-apiserver: $kube_apiserver"
}
