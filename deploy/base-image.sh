#!/usr/bin/env bash
# Makes base images from Debian packages, where no registry can be reached to pull them. Needs root and debootstrap.
#
#   hopline-base      Debian with Python 3.11 and nothing of this machine: the base of the final image
#   hopline-build     the same with this machine's certificates and pip configuration, for the build stage only
#   hopline-haproxy   Debian with HAProxy
#   hopline-spark-base  Debian with Python 3.11 and Java 17, only if it is asked for: base-image.sh analytics
#   hopline-postgres-base  Debian with PostgreSQL 15, only if it is asked for: base-image.sh postgres
#
# An image that exists is kept; HOPLINE_REBUILD=1 makes it anew.
set -euo pipefail

release=bookworm
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  sudo=(sudo --non-interactive)
fi
work=$(mktemp -d)
trap '"${sudo[@]}" rm -rf "$work"' EXIT

exists() {
  [ -z "${HOPLINE_REBUILD:-}" ] && docker image inspect "$1" >/dev/null 2>&1
}

# The mirror that apt uses on this machine, if it is one of this release; debootstrap knows another.
mirror() {
  apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk -v release="$release" '$1 == release { print $2; exit }'
}

# debian IMAGE PACKAGE,…: imports a minimal Debian with these packages.
debian() {
  local root=$work/root packages=$2
  local -a from=()
  read -r -a from < <(mirror) || true
  mkdir -p "$work/packages"
  "${sudo[@]}" debootstrap --variant=minbase --cache-dir="$work/packages" --include="$packages" "$release" "$root" \
    "${from[@]}" >"$work/debootstrap.log" 2>&1 || { tail -n 20 "$work/debootstrap.log" >&2; return 1; }
  # Files that this machine lent for the installation, and documentation that no container needs.
  "${sudo[@]}" rm -rf "$root"/etc/resolv.conf "$root"/etc/hostname "$root"/etc/apt/sources.list \
    "$root"/var/{cache,lib}/apt/* "$root"/var/log/* "$root"/usr/share/{doc,locale,man}/*
  "${sudo[@]}" tar -C "$root" --numeric-owner -c . | docker import --change 'CMD ["bash"]' - "$1" >/dev/null
  "${sudo[@]}" rm -rf "$root"
}

# The registry of Python packages is reached as on this machine.
with_pip_configuration() {
  local context=$work/context file
  mkdir -p "$context/files/etc/ssl/certs"
  for file in /etc/pip.conf "$HOME/.pip/pip.conf" "$HOME/.config/pip/pip.conf"; do
    if [ -f "$file" ]; then
      install -D "$file" "$context/files/${file/#$HOME//root}"
    fi
  done
  cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$context/files/etc/ssl/certs/ca-certificates.crt"
  {
    printf 'FROM hopline-base\nCOPY files/ /\n'
    printf 'ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt\n'
    env | sed -n -e '/^PIP_CERT=/d' -e "s/^\(PIP_[A-Z_]*\)=\(.*\)$/ENV \1='\2'/p"
  } >"$context/Dockerfile"
  DOCKER_BUILDKIT=0 docker build --quiet --tag hopline-build "$context" >/dev/null
}

exists hopline-base || debian hopline-base ca-certificates,python3,python3-venv
exists hopline-build || with_pip_configuration
exists hopline-haproxy || debian hopline-haproxy haproxy
if [ "${1:-}" = analytics ]; then
  exists hopline-spark-base || debian hopline-spark-base openjdk-17-jre-headless,procps,python3
elif [ "${1:-}" = postgres ]; then
  exists hopline-postgres-base || debian hopline-postgres-base postgresql-15
fi
