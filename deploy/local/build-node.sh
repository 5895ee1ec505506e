#!/usr/bin/env bash
# Builds what a node with real containers needs into bin/node at the top of the
# repository: containerd, runc, the CNI plugins, kubelet, kube-proxy, kubectl and
# CoreDNS, each from the module below programs/ that pins it, and the images that
# every cluster has. Shows how far it is. Needs Go, bash, and the Debian packages
# that cluster-packages.sh installs.
#
# Usage: deploy/local/build-node.sh
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/progress.sh"
case ${1-} in -h | --help | help)
	sed -n '2,/^set /{/^# \{0,1\}/s///p;}' "$here/build-node.sh"
	exit 0
	;;
esac
out=$(cd "$here/../.." && pwd)/bin/node
mkdir -p "$out/cni" "$out/images"

containerd=github.com/containerd/containerd/v2
runc=$(version programs/runc github.com/opencontainers/runc)

CGO_ENABLED=1 build programs/runc "$out" tool -tags seccomp -ldflags "-s -w -X main.version=${runc#v}"
CGO_ENABLED=0 build programs/cni "$out/cni" tool -ldflags "-s -w"
CGO_ENABLED=0 build programs/containerd "$out" tool -tags "no_btrfs no_zfs no_aufs no_devmapper" \
	-ldflags "-s -w -X $containerd/version.Version=$(version programs/containerd $containerd)"
build programs/kubernetes "$out" tool -ldflags "$(kubernetes_ldflags "$(version programs/kubernetes k8s.io/kubernetes)")"
CGO_ENABLED=0 build programs/coredns "$out" . -ldflags "-s -w"

# pause and the images are made of packages of the workspace.
cd "$here"
export GOWORK=$here/../../go.work
CGO_ENABLED=0 go build -ldflags "-s -w" -o "$out/" ./cmd/pause
CGO_ENABLED=0 go build -o "$out/" ./cmd/nodeimages
status "making images"
"$out/nodeimages" "$out/images" "$out/pause"
note "built in ${SECONDS}s: bin/node"
