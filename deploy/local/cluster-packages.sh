#!/usr/bin/env bash
# Installs the Debian packages that a node with real containers needs. Run it as
# root.
#
#   to build   gcc libc6-dev libseccomp-dev pkg-config       runc is written in Go and C
#   to run     iproute2 nftables util-linux                   ip, nft, mount
#   in images  bash busybox-static coreutils perl python3-minimal
#
# Usage: deploy/local/cluster-packages.sh
set -euo pipefail
apt-get install --yes --no-install-recommends \
	gcc libc6-dev libseccomp-dev pkg-config \
	iproute2 nftables util-linux \
	bash busybox-static coreutils dash perl python3-minimal
