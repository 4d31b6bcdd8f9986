# Sourced by dev: Debian packages. Only this file and kube.sh's build touch the system.

build_packages=(g++ ccache cmake ninja-build pkg-config libpq-dev libsqlite3-dev libhiredis-dev
  libcurl4-openssl-dev libyaml-cpp-dev libcli11-dev nlohmann-json3-dev libfmt-dev libgtest-dev
  libboost-dev libssl-dev librabbitmq-dev prometheus-cpp-dev)
test_packages=(postgresql pgbouncer redis-server etcd-server rabbitmq-server openssl prometheus
  systemd groff-base python3 python3-pip python3-psycopg python3-psycopg2 python3-setuptools
  python3-wheel dpkg-dev fish zsh)
deb_packages=(dpkg-dev lintian)
chroot_packages=(debootstrap)
bench_packages=(libbenchmark-dev)
format_packages=(clang-format-14)
tidy_packages=(clang-tidy-14)
clang_packages=(clang-14 libclang-rt-14-dev)
kube_packages=(golang-go golang-github-modern-go-reflect2-dev make rsync jq dpkg-dev)

as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "this needs root: $*"
  fi
}

missing_packages() {
  local installed package
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null |
    awk '$2 == "installed" { print $1 }') || true
  for package in "$@"; do
    grep -qxF -- "$package" <<<"$installed" || echo "$package"
  done
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" \
    >/dev/null || die "cannot install $*"
}

# Debian starts servers as system services when it installs them, unless policy-rc.d forbids it. The
# tests start their own, and RabbitMQ's package fails where its service cannot start, as in a chroot.
apt_install_servers() {
  local policy=/usr/sbin/policy-rc.d
  if [[ -e $policy ]]; then
    apt_install "$@"
    return
  fi
  (
    trap 'as_root rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
    apt_install "$@"
  )
}

# need PACKAGE...: installs those that are missing.
need() {
  command -v dpkg-query >/dev/null || return 0 # not Debian: the build says what it misses
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -eq 0 ]] && return
  phase "installing ${missing[*]}"
  as_root apt-get update -qq || die "apt-get update failed"
  local cluster_conf=/etc/postgresql-common/createcluster.conf
  if [[ " ${missing[*]} " == *" postgresql "* ]]; then
    apt_install postgresql-common
    echo "    setting create_main_cluster = false in $cluster_conf: no system database"
    as_root sed -i 's/^#\?create_main_cluster.*/create_main_cluster = false/' "$cluster_conf"
  fi
  apt_install_servers "${missing[@]}"
  # Nor are they wanted after the next boot.
  local unwanted
  for unwanted in pgbouncer redis-server etcd-server rabbitmq-server prometheus; do
    [[ " ${missing[*]} " == *" $unwanted "* ]] || continue
    local service=${unwanted/etcd-server/etcd}
    echo "    disabling the system service $service, which its package has just enabled"
    as_root service "$service" stop >/dev/null 2>&1 || true
    as_root update-rc.d "$service" disable >/dev/null 2>&1 || true
    # Erlang's port mapper comes with RabbitMQ, as a service of systemd only.
    [[ $service != rabbitmq-server ]] ||
      as_root systemctl disable --now epmd.socket epmd.service >/dev/null 2>&1 || true
  done
}

cmd_setup() {
  local kube=()
  find_kube || kube=("${kube_packages[@]}") # only to build the one that is missing
  need "${kube[@]}" "${build_packages[@]}" "${test_packages[@]}" "${bench_packages[@]}" \
    "${format_packages[@]}" "${tidy_packages[@]}" "${clang_packages[@]}" \
    "${deb_packages[@]}" "${chroot_packages[@]}"
  phase "everything is installed"
}
