# Sourced by dev: the PostgreSQL that all tests of a run share, and what is left to stop at its end.

test_tmp=
server_data=
server_bin=

as_postgres() {
  if [[ $EUID -eq 0 ]]; then
    (cd / && runuser -u postgres -- "$@")
  else
    "$@"
  fi
}

# Ports below the range from which the kernel serves outgoing connections.
free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 12000))
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  echo "$port"
}

# One private server for the whole run, on a port and in a directory of its own.
start_postgres() {
  phase "starting a private PostgreSQL"
  local port settings
  server_bin=$(find /usr/lib/postgresql -path '*/bin/postgres' 2>/dev/null | sort -V | tail -n 1)
  server_bin=${BATON_TEST_PG_BINDIR:-${server_bin%/postgres}}
  [[ -x $server_bin/initdb ]] || die "no PostgreSQL server is installed"
  export BATON_TEST_PG_BINDIR=$server_bin
  mkdir "$test_tmp/server"
  [[ $EUID -ne 0 ]] || chown postgres: "$test_tmp/server"
  as_postgres "$server_bin/initdb" -D "$test_tmp/server/data" -U postgres -A trust -E UTF8 \
    --locale=C.UTF-8 --no-sync >"$test_tmp/initdb.log" 2>&1 || {
    cat "$test_tmp/initdb.log"
    return 1
  }
  server_data=$test_tmp/server/data
  for _ in 1 2 3; do
    port=$(free_port)
    settings="-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$test_tmp/server"
    settings+=" -c fsync=on -c max_connections=300"
    if as_postgres "$server_bin/pg_ctl" start -w -s -D "$server_data" -o "$settings" \
      -l "$test_tmp/server/log"; then
      export BATON_TEST_POSTGRES="postgres://postgres@127.0.0.1:$port/postgres"
      return 0
    fi
  done
  cat "$test_tmp/server/log"
  return 1
}

# pg_ctl stops exactly the process that this data directory names.
clean_up_tests() {
  local status=$?
  if [[ -n $server_data && -f $server_data/postmaster.pid ]]; then
    as_postgres "$server_bin/pg_ctl" stop -w -s -m immediate -D "$server_data" || true
    cp "$test_tmp/server/log" build/postgres.log || true
  fi
  [[ -z $test_tmp ]] || rm -rf "$test_tmp"
  exit "$status"
}
