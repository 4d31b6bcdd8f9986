#!/bin/bash
# Puts together the file system of an image that has nothing but one program: no shell, no package
# manager, nothing to call for one who has got in.
#
#   deploy/image_root.sh DIRECTORY PROGRAM...
#
# The programs go to /usr/bin, with the libraries that the loader finds for them, certificates of
# public authorities, the time zones, and a user. The Containerfile calls it while it builds.
set -euo pipefail

root=$1
shift

copy() { # copy FILE: to the same place, as what it is once links are followed
  install -D -m "$(stat -L -c %a "$1")" "$1" "$root$1"
}

for program in "$@"; do
  install -D -m 755 "$program" "$root/usr/bin/${program##*/}"
  # "libpq.so.5 => /lib/x86_64-linux-gnu/libpq.so.5 (0x…)" and "/lib64/ld-linux-x86-64.so.2 (0x…)"
  ldd "$program" | grep -q 'not found' && { ldd "$program" >&2; exit 1; }
  while read -r library; do
    copy "$library"
  done < <(ldd "$program" | grep -o '/[^ ]*')
done

copy /etc/ssl/certs/ca-certificates.crt
install -d "$root/usr/lib/ssl"
ln -sfn /etc/ssl/certs "$root/usr/lib/ssl/certs"
ln -sfn /etc/ssl/certs/ca-certificates.crt "$root/usr/lib/ssl/cert.pem"
install -d "$root/usr/share"
cp -r /usr/share/zoneinfo "$root/usr/share/"
install -d -m 1777 "$root/tmp"
install -d "$root/etc" "$root/proc" # the engine mounts /proc, which baton reads
echo 'baton:x:10001:10001::/:/sbin/nologin' >"$root/etc/passwd"
echo 'baton:x:10001:' >"$root/etc/group"
