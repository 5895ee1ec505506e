#!/usr/bin/env bash
# Sets every module of the repository to another release of Kubernetes: k8s.io/kubernetes, the k8s.io modules of that
# release, and etcd as the release requires it. The last line names what is left to do. Needs Go and bash.
#
# Usage: tools/kubernetes-version.sh VERSION        such as v1.37.2
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOWORK=off
version=${1-}
if [[ ! $version =~ ^v1\.[0-9]+\.[0-9]+$ ]]; then
	echo "kubernetes-version.sh: VERSION is '$version', expected v1.MINOR.PATCH" >&2
	exit 2
fi
program=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
etcd=$(sed -n 's#^\tgo.etcd.io/etcd/server/v3 \(v[^ ]*\).*#\1#p' "$program")

# required PATH prints the version of a module that the local control plane requires now.
required() { sed -n "s#^\t$1 \(v[^ ]*\)\$#\1#p" deploy/local/go.mod; }
from=$(required k8s.io/kubernetes)
fromEtcd=$(required go.etcd.io/etcd/server/v3)

mapfile -t modules < <(git grep -l -E "^\s*(k8s.io/api|k8s.io/kubernetes)\s" -- '*go.mod' ':!deploy/local/olderminors' | xargs -n1 dirname)
for module in "${modules[@]}"; do
	sed -i -e "s#\(k8s\.io/[a-z-]* \)v0${from#v1}\$#\1v0${version#v1}#" -e "s#k8s.io/kubernetes $from#k8s.io/kubernetes $version#" \
		-e "s#go.etcd.io/etcd/server/v3 $fromEtcd#go.etcd.io/etcd/server/v3 $etcd#" "$module/go.mod"
done
for module in "${modules[@]}"; do
	echo "$module: go mod tidy"
	go -C "$module" mod tidy
done
echo "From $from to $version. Next: make align, then docs/new-kubernetes-version.md."
