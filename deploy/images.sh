#!/usr/bin/env bash
# Builds the images that docker-compose.yml names: hopline and hopline-balancer.
# `deploy/images.sh analytics` builds hopline-spark too, which is large and takes its time; `deploy/images.sh postgres`
# hopline-postgres.
#
# They stand on python and haproxy from the registry, or, where that cannot be reached, on what base-image.sh makes.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(sed -n 's/^ARG BASE_IMAGE=//p' deploy/Dockerfile)
haproxy=$(sed -n 's/^ARG BASE_IMAGE=//p' deploy/balancer/Dockerfile)
bases=()
balancer_bases=()
spark_bases=()
postgres_bases=()
if ! { docker pull --quiet "$python" && docker pull --quiet "$haproxy"; } >/dev/null 2>&1; then
  echo "No registry can be reached: making the base images from Debian packages"
  deploy/base-image.sh "$@"
  bases=(--build-arg BASE_IMAGE=hopline-base --build-arg BUILD_IMAGE=hopline-build)
  balancer_bases=(--build-arg BASE_IMAGE=hopline-haproxy)
  spark_bases=(--build-arg BUILD_IMAGE=hopline-build)
  postgres_bases=(--build-arg BASE_IMAGE=hopline-postgres-base)
elif [ "${1:-}" = analytics ]; then
  docker image inspect hopline-spark-base >/dev/null 2>&1 || printf '%s\n' "FROM $python" \
    'RUN mkdir -p /usr/share/man/man1 && apt-get -qq update && apt-get -qq install --no-install-recommends \' \
    '    openjdk-17-jre-headless && rm -rf /var/lib/apt/lists/*' |
    docker build --network host --quiet --tag hopline-spark-base - >/dev/null
fi

# The classic builder and the machine's own network: BuildKit asks a registry about images that are only here.
export DOCKER_BUILDKIT=0
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
build() {
  local image=$1 said
  shift
  said=$(docker build --network host --tag "$image" "$@" 2>&1) || { echo "$said" >&2; exit 1; }
  echo "built $image"
}
build "${HOPLINE_IMAGE:-hopline}" "${bases[@]}" --build-arg REVISION="$revision" --file deploy/Dockerfile .
build "${HOPLINE_BALANCER_IMAGE:-hopline-balancer}" "${balancer_bases[@]}" deploy/balancer
if [ "${1:-}" = analytics ]; then
  build "${HOPLINE_SPARK_IMAGE:-hopline-spark}" "${spark_bases[@]}" --file deploy/spark/Dockerfile .
elif [ "${1:-}" = postgres ]; then
  build "${HOPLINE_POSTGRES_IMAGE:-hopline-postgres}" "${postgres_bases[@]}" deploy/postgres
fi
