#!/usr/bin/env bash
# Generates what is made of the contract (Go code, CustomResourceDefinition) into a temporary directory and fails if it
# differs from what is committed, in either direction: a file that is out of date, one that is missing, one that nothing
# generates any more.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

.bin/buf generate --output "$scratch/generated"
.bin/buf generate --template buf.gen.crd.yaml --output "$scratch/generated"

mkdir "$scratch/committed"
find proto deploy/chart/jobpolicy/files/jobpolicies.yaml -name '*.pb.go' -print0 -o -name jobpolicies.yaml -print0 |
	tar -c --null -T - | tar -x -C "$scratch/committed"

cd "$scratch"
if ! diff -ru committed generated; then
	echo 'what is generated from proto/ is out of date: run make generate'
	exit 1
fi
