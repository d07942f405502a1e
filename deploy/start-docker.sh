#!/usr/bin/env bash
# Starts a Docker daemon where none runs: on a build machine without an init system, as root. Does nothing otherwise.
#
# A sandbox may lack what the daemon expects, so it is started with fewer and fewer features. Port publishing and
# networks between containers are needed in the end: without iptables there are only those of the userland proxy.
set -euo pipefail

log=${HOPLINE_DOCKER_LOG:-/var/log/hopline-dockerd.log}
attempts=(
  ""
  "--storage-driver=vfs"
  "--iptables=false --ip6tables=false"
  "--iptables=false --ip6tables=false --storage-driver=vfs"
)

if docker info >/dev/null 2>&1; then
  exit 0
fi
for options in "${attempts[@]}"; do
  # shellcheck disable=SC2086 # several options in one string
  setsid nohup dockerd $options >"$log" 2>&1 </dev/null &
  daemon=$!
  for _ in $(seq 60); do
    if docker info >/dev/null 2>&1; then
      echo "Docker runs${options:+ with $options}"
      exit 0
    fi
    kill -0 "$daemon" 2>/dev/null || break
    sleep 0.5
  done
  kill "$daemon" 2>/dev/null || true
  wait "$daemon" 2>/dev/null || true
done
echo "Docker cannot run here; the daemon's last words (all are in $log):" >&2
tail -n 5 "$log" >&2
exit 1
