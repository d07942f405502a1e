#!/usr/bin/env bash
# hopline-postgres NAME OTHER: one of two PostgreSQL servers, of which one is the primary and the other stands by.
#
# Which one is the primary is written in a file that both see. It is NAME when both are new and NAME comes first; it
# changes by `promote` alone. Whoever starts and is not the primary follows it, and what it has that the primary has
# not is gone: nobody was told that it was kept, since the primary tells nobody before its standby has it on disk.
set -euo pipefail
name=$1 other=$2
data=/var/lib/hopline-postgres/data
shared=/var/lib/hopline-secret
passwords=$shared/pgpass # as libpq reads it: of the store, and of the one that stands by
primary=$shared/postgres-primary
export PGPASSFILE=$passwords

say() { echo "hopline-postgres: $*" >&2; }

# Asks the other server, as the one that stands by.
ask() { psql --no-psqlrc --tuples-only --no-align --quiet "host=$other user=standby dbname=hopline connect_timeout=2" "$@"; }

until_other_is_primary() {
  until [ "$(ask -c 'SELECT pg_is_in_recovery()' 2>/dev/null)" = f ]; do sleep 0.5; done
}

password() { head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; }

# A database with a role for the store, and one for the standby with what it needs and no more.
make() {
  local store standby
  store=$(password) standby=$(password)
  rm -rf "$data"
  initdb --pgdata "$data" --username admin --auth-local trust --auth-host scram-sha-256 --encoding UTF8 \
    --locale C.UTF-8 --data-checksums >/dev/null
  cat >>"$data/pg_hba.conf" <<RULES
host hopline hopline,standby all scram-sha-256
host replication standby all scram-sha-256
RULES
  postgres --single -D "$data" -j postgres >/dev/null <<SQL
CREATE ROLE hopline LOGIN PASSWORD '$store';

CREATE DATABASE hopline OWNER hopline;

CREATE ROLE standby LOGIN REPLICATION PASSWORD '$standby' IN ROLE pg_read_all_stats;

GRANT ALTER SYSTEM ON PARAMETER synchronous_standby_names TO standby;

SQL
  # Functions are each database's own: what pg_rewind reads by, and what makes a change count.
  postgres --single -D "$data" -j hopline >/dev/null <<SQL
GRANT EXECUTE ON FUNCTION pg_ls_dir(text, boolean, boolean), pg_stat_file(text, boolean),
  pg_read_binary_file(text), pg_read_binary_file(text, bigint, bigint, boolean), pg_reload_conf() TO standby;

SQL
  (umask 077; printf '*:*:*:%s\n' "hopline:$store" "standby:$standby" >"$passwords")
  echo "$name" >"$primary"
}

# All of the primary's, as it is now.
copy() {
  say "copying all of $other's data"
  rm -rf "$data"
  pg_basebackup --pgdata "$data" --wal-method stream --checkpoint fast --write-recovery-conf \
    --dbname "host=$other user=standby application_name=$name"
}

# What this one has that the primary has not goes, and it follows it.
rewind() {
  say "was the primary, follows $other now"
  pg_rewind --target-pgdata "$data" --write-recovery-conf \
    --source-server "host=$other user=standby dbname=hopline application_name=$name" ||
    copy
}

# From when it follows, what is committed waits for it.
be_waited_for() {
  until [ "$(ask -c "SELECT count(*) FROM pg_stat_replication WHERE application_name = '$name' AND state = 'streaming'" \
    2>/dev/null)" = 1 ]; do sleep 0.5; done
  ask -c "ALTER SYSTEM SET synchronous_standby_names = '\"$name\"'" -c "SELECT pg_reload_conf()" >/dev/null
  say "stands by: what $other commits waits for $name"
}

follow() {
  if [ -e "$data/standby.signal" ]; then
    say "follows $other"
  elif [ -e "$data/PG_VERSION" ]; then
    until_other_is_primary
    rewind
  else
    until_other_is_primary
    copy
  fi
  # A child of nobody's, so that the server does not find it among its own.
  (be_waited_for &)
}

lead() {
  until [ -e "$data/PG_VERSION" ]; do
    say "was the primary, and its disk is lost: 'promote' makes $other the primary, and it has all that was confirmed"
    sleep 10
    [ "$(cat "$primary")" = "$name" ] || return 1
  done
}

# One server on this volume, whatever the process ids of a former container say.
exec 9>"${data%/data}/lock"
flock --nonblock 9 || { say "another server runs on this volume"; exit 1; }
rm -f "$data/postmaster.pid"

if [ ! -e "$primary" ] && [ "${3:-}" = first ]; then make; fi
until [ -e "$primary" ]; do sleep 0.5; done
if [ "$(cat "$primary")" != "$name" ] || ! lead; then follow; fi
# Kept so that one that was away for a while finds what it has missed.
exec postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp -c cluster_name="$name" \
  -c wal_keep_size=512MB
