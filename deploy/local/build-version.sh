#!/usr/bin/env bash
# Builds kube-apiserver, kube-controller-manager and kube-scheduler of older minors of
# Kubernetes into bin/olderminors/MINOR/ at the top of the repository, each from the module
# below olderminors/ that pins its version. Shows how far it is. Needs Go and bash. A minor
# takes several minutes the first time.
#
# Usage: deploy/local/build-version.sh MINOR...     for example 1.34; the minors are the
#        directories below deploy/local/olderminors
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/progress.sh"
case ${1-} in -h | --help | help)
	sed -n '2,/^set /{/^# \{0,1\}/s///p;}' "$here/build-version.sh"
	exit 0
	;;
esac
for minor; do
	if ! [ -e "$here/olderminors/$minor/go.mod" ]; then
		echo "build-version.sh: no module is called olderminors/$minor" >&2
		exit 2
	fi
	out=$(cd "$here/../.." && pwd)/bin/olderminors/$minor
	mkdir -p "$out"
	build "olderminors/$minor" "$out" tool -p 2 -ldflags "$(kubernetes_ldflags "$(version "olderminors/$minor" k8s.io/kubernetes)")"
	note "built after ${SECONDS}s: bin/olderminors/$minor"
done
