#!/usr/bin/env bash
# Generates the Go code of the contract into a temporary directory and fails if it differs from the code in proto/,
# in either direction: a file that is out of date, one that is missing, one that nothing generates any more.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

.bin/buf generate --output "$scratch"
mv "$scratch/proto" "$scratch/generated"

mkdir "$scratch/committed"
find proto -name '*.pb.go' -print0 | tar -c --null -T - | tar -x -C "$scratch/committed" --strip-components 1

cd "$scratch"
if ! diff -ru committed generated; then
	echo 'the generated code in proto/ is out of date: run make generate'
	exit 1
fi
