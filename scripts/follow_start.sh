#!/bin/bash
# Does a path of docs/start.md as it is printed, in a directory of its own and with the database
# $DATABASE, an empty one, in the place of the reader's. Then it looks at what is in there.
#
#   DATABASE=postgres://… follow_start.sh PAGE cron|daemon|cpp|other
#
# `baton` is on the PATH. `cpp` needs the installed library, and cmake and ninja.
set -euo pipefail

page=$(realpath "$1")
path=$2
readme=${page%/docs/*}/README.md

# blocks FILE KIND SECTION [NUMBER]: all blocks of a kind in a section, or one of them.
blocks() {
  awk -v kind="\`\`\`$2" -v heading="## $3" -v wanted="${4:-0}" '
    /^```/ {
      fenced = !fenced
      printing = fenced && here && $0 == kind && (++count == wanted || !wanted)
      any = any || printing
      next
    }
    /^## / && !fenced { here = $0 == heading }
    printing
    END { exit !any }' "$1" || {
    echo "follow_start: $1 has no such block of $2 in its section '$3'" >&2
    return 1
  }
}

# follow FILE KIND SECTION [NUMBER]: does what these blocks say. Of a console the commands, but for
# what they install, which is here already.
follow() {
  local text
  text=$(blocks "$@")
  [[ $2 == bash ]] || text=$(sed -n 's/^\$ //p' <<<"$text" | sed '/^sudo apt install /d')
  eval "${text//'postgres://app@db/shop'/"$DATABASE"}"
}

ask() {
  psql "$DATABASE" -qAt -c "$1"
}

# expect SQL ANSWER
expect() {
  local answer
  answer=$(ask "$1")
  [[ $answer == "$2" ]] || {
    echo "follow_start: '$answer' and not '$2' is the answer to $1" >&2
    return 1
  }
}

clean_up() {
  local left
  left=$(jobs -p)
  # shellcheck disable=SC2086 # several
  [[ -z $left ]] || { kill $left && wait; } || true
  cd /
  rm -rf "$directory"
}

directory=$(mktemp -d)
trap clean_up EXIT
cd "$directory"

case $path in
  cron)
    follow "$page" bash 'Before: a store and a fence'
    follow "$page" bash 'A cron job'
    expect 'SELECT count(*) FROM daily_report' 1
    ;;
  daemon)
    follow "$page" bash 'Before: a store and a fence'
    follow "$page" bash 'A daemon' 1
    follow "$page" bash 'A daemon' 2
    until [[ $(ask 'SELECT count(DISTINCT node) FROM tick') == 2 ]]; do sleep 0.1; done
    follow "$page" bash 'A daemon' 3
    wait
    expect 'SELECT bool_and(nodes = 1) FROM
            (SELECT count(DISTINCT node) nodes FROM tick GROUP BY term) t' t
    ;;
  cpp)
    cp -r "${readme%/*}/examples" .
    export BATON_STORE=$DATABASE
    follow "$readme" console 'In C++'
    expect 'SELECT month FROM report' 2026-11
    ;;
  other)
    follow "$page" bash 'Before: a store and a fence'
    follow "$page" bash 'A service in another language'
    wait
    expect 'SELECT host FROM daily_report' hold
    ;;
  *)
    echo "follow_start: there is no path $path" >&2
    exit 2
    ;;
esac
expect 'SELECT count(*) FROM baton_fence.seen' 1 # its name: all of it was behind the fence
