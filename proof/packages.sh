#!/usr/bin/env bash
# Installs the Debian packages that prove.sh needs, if one is missing. Run it as root.
set -euo pipefail
missing=()
for tool in spin z3 gcc cpp; do
	if ! command -v "$tool" >/dev/null; then missing+=("$tool"); fi
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi
echo "installing ${missing[*]}"
install() { apt-get install --yes --no-install-recommends "${missing[@]}" libc6-dev; }
# Only a machine whose lists of packages are missing or old needs new ones.
install || { apt-get update && install; }
