#!/usr/bin/env bash
# Installs the Debian packages that a node with real containers needs, if one is
# missing. Run it as root.
#
#   to build   gcc libc6-dev libseccomp-dev pkg-config       runc is written in Go and C
#   to run     iproute2 nftables util-linux                   ip, nft, mount
#   in images  bash busybox-static coreutils dash perl python3
#
# Usage: deploy/local/cluster-packages.sh
set -euo pipefail
packages=(
	gcc libc6-dev libseccomp-dev pkg-config
	iproute2 nftables util-linux
	bash busybox-static coreutils dash perl python3
)
missing=()
for package in "${packages[@]}"; do
	status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
	if [ "$status" != installed ]; then missing+=("$package"); fi
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi
echo "installing ${missing[*]}"
install() { apt-get install --yes --no-install-recommends "${missing[@]}"; }
# Only a machine whose lists of packages are missing or old needs new ones.
install || { apt-get update && install; }
