# Sourced by dev: Debian packages.

package_tree=build/package     # where they are built
package_directory=build/packages # and where they are put

make_packages() {
  need "${build_packages[@]}" "${deb_packages[@]}"
  build package programs || return 1
  phase "packages"
  rm -rf "$package_directory"
  mkdir -p "$package_directory"
  (cd "$package_tree" && cpack -G DEB -B cpack) >"$package_tree/cpack.log" 2>&1 || {
    cat "$package_tree/cpack.log"
    return 1
  }
  mv "$package_tree"/cpack/*.deb "$package_directory"
  phase "lintian"
  local root=()
  [[ $EUID -ne 0 ]] || root=(--allow-root)
  lintian "${root[@]}" --fail-on error,warning "$package_directory"/*.deb
}

# Where this machine gets its packages from.
debian_mirror() {
  # shellcheck disable=SC2016 # apt-get fills in what begins with a dollar sign
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' |
    head -n 1
}

# Everything but what apt and dpkg remember, and caches.
files_of_chroot() {
  as_root find "$1" -xdev \( -path "$1/var/cache" -o -path "$1/var/log" -o -path "$1/var/lib/apt" \
    -o -path "$1/var/lib/dpkg" -o -path "$1/tmp" -o -path "$1/root" -o -path "$1/dev" \) -prune \
    -o -printf '%P\n' | LC_ALL=C sort
}

# With a /proc that goes with the command.
in_chroot() {
  # shellcheck disable=SC2016 # the inner shell expands them
  as_root unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' \
    "$chroot" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive "$@"
}

# A Debian 12 with nothing but its base in $chroot. A service that a package would start is written
# down, and not started.
make_chroot() {
  local mirror
  mirror=$(debian_mirror)
  mirror=${mirror:-http://deb.debian.org/debian}
  as_root chmod 755 "$chroot" # users of its own live in it
  as_root debootstrap --variant=minbase bookworm "$chroot" "$mirror" \
    >"$package_tree/debootstrap.log" 2>&1 || die "debootstrap failed: $package_tree/debootstrap.log"
  printf '#!/bin/sh\necho "$@" >>/tmp/services\nexit 101\n' |
    as_root tee "$chroot/usr/sbin/policy-rc.d" >/dev/null
  as_root chmod 755 "$chroot/usr/sbin/policy-rc.d"
  in_chroot apt-get update -qq
  as_root mkdir "$chroot/tmp/packages"
  as_root cp "$package_directory"/*.deb tests/install/consumer/main.cc scripts/follow_start.sh \
    "$chroot/tmp/packages"
}

# try WHAT COMMAND...: says whether it held.
try() {
  if "${@:2}" >"$package_tree/try.log" 2>&1; then
    echo "    $1"
  else
    echo "    FAILED: $1"
    sed 's/^/        /' "$package_tree/try.log"
    untrue=$((untrue + 1))
  fi
}

try_programs() {
  try "baton and baton-apps install" in_chroot sh -c \
    'apt-get install -y -qq --no-install-recommends /tmp/packages/baton_*.deb \
       /tmp/packages/baton-apps_*.deb'
  try "baton run runs a command under a lock" in_chroot sh -c \
    'test "$(baton run job --store sqlite:/tmp/locks.db -- echo ran)" = ran'
  try "the applications run" in_chroot sh -c \
    'baton-gateway --help && warehouse --help && documents --help'
  try "the manual pages are there" in_chroot sh -c \
    'for page in baton baton-run baton-lock documents; do
       zcat /usr/share/man/man1/$page.1.gz | grep -q "^.SH \"NAME\"" || exit; done'
  try "bash finds the completion" in_chroot bash -c \
    '. /usr/share/bash-completion/completions/baton && declare -F _baton'
  try "no service is started or enabled" in_chroot sh -c \
    'test ! -e /tmp/services && ! find /etc/systemd -name "*baton*" -o -name "*documents*" | grep .'
}

try_removal() {
  try "they are removed" in_chroot apt-get remove -y -qq baton baton-apps
  try "their settings stay until they are purged" in_chroot test -e /etc/documents/documents.yaml
  try "they are purged" in_chroot apt-get purge -y -qq --autoremove baton baton-apps
  files_of_chroot "$chroot" >"$package_tree/after"
  try "nothing of them is left" diff "$package_tree/before" "$package_tree/after"
}

try_development() {
  try "libbaton-dev installs" in_chroot sh -c \
    'apt-get install -y -qq --no-install-recommends g++ pkg-config /tmp/packages/libbaton*.deb'
  try "a program compiles by pkg-config alone, and runs" in_chroot sh -c \
    'cd /tmp && g++ -std=c++20 packages/main.cc $(pkg-config --cflags --libs baton-open) -o main &&
     ./main /tmp/consumer.db | grep "held with token"'
}

# A path of docs/start.md, from the installed pages, on a PostgreSQL that is there for it alone: a
# server on a socket, started by hand as its own user.
follow_start_in_chroot() {
  # shellcheck disable=SC2016 # the bash inside expands them
  in_chroot timeout 300 bash -ec '
    bin=$(echo /usr/lib/postgresql/*/bin)
    place=$(mktemp -d /tmp/postgres.XXXXXX)
    chown postgres: "$place"
    cd "$place"
    as_postgres() { runuser -u postgres -- "$bin/$@"; }
    as_postgres initdb -D "$place/data" -U app -A trust --no-sync >"$place/initdb.log"
    trap "as_postgres pg_ctl stop -s -w -m immediate -D \"$place/data\"" EXIT
    as_postgres pg_ctl start -s -w -D "$place/data" -l "$place/log" \
      -o "-k $place -c listen_addresses="
    psql -q -h "$place" -U app postgres -c "CREATE DATABASE shop"
    DATABASE="postgres://app@/shop?host=$place" \
      bash /tmp/packages/follow_start.sh /usr/share/doc/baton/docs/start.md "$0"' "$1" </dev/null
}

try_start() {
  try "baton, PostgreSQL and what builds the program in C++ install" in_chroot sh -c \
    'apt-get install -y -qq --no-install-recommends /tmp/packages/baton_*.deb postgresql cmake \
       ninja-build'
  try "start: a cron job" follow_start_in_chroot cron
  try "start: a daemon" follow_start_in_chroot daemon
  try "start: a service in C++" follow_start_in_chroot cpp
  try "start: a service in another language" follow_start_in_chroot other
}

# Installs, runs and removes the packages where nothing else is.
test_packages_in_chroot() (
  need "${chroot_packages[@]}"
  untrue=0
  chroot=$(mktemp -d "${TMPDIR:-/tmp}/baton-chroot.XXXXXX")
  trap 'as_root rm -rf --one-file-system "$chroot"' EXIT
  phase "a bare Debian 12"
  make_chroot
  files_of_chroot "$chroot" >"$package_tree/before"
  phase "installing, running and removing the packages"
  try_programs
  try_removal
  try_development
  phase "each path of docs/start.md, as it is printed"
  try_start
  [[ $untrue -eq 0 ]]
)

cmd_package() {
  local test=
  case ${1:-} in
    --test) test=yes ;;
    '') ;;
    *) die "package does not know $1" ;;
  esac
  make_packages || die "no packages"
  [[ -z $test ]] || test_packages_in_chroot || die "the packages do not do what they should"
  phase "the packages are in $package_directory"
  (cd "$package_directory" && du -h --apparent-size -- *.deb)
}
