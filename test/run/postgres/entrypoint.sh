#!/bin/sh
# What the entrypoint of the public image does, as far as the sample needs it.
set -eu
if [ "${1:-}" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  mkdir -p "$PGDATA"
  chmod 700 "$PGDATA"
  echo "$POSTGRES_PASSWORD" >/tmp/password
  initdb --pgdata="$PGDATA" --username=postgres --pwfile=/tmp/password --auth=scram-sha-256 --auth-local=trust --encoding=UTF8 --locale=C
  rm /tmp/password
  printf '%s\n' "listen_addresses = '*'" "unix_socket_directories = '/tmp'" >>"$PGDATA/postgresql.conf"
  echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
fi
exec "$@"
