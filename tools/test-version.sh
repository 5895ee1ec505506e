#!/usr/bin/env bash
# Runs tests on control planes of one minor version of Kubernetes, and says how long that took. Needs the executables in
# JOBPOLICY_BIN_DIR.
#
#   JOBPOLICY_TESTS='TestA|TestB' tools/test-version.sh 1.34
#
# JOBPOLICY_TESTS names tests of test/plane/e2e. A minor without a module in deploy/local/olderminors is that of jobpolicy-local.
set -euo pipefail
cd "$(dirname "$0")/.."

minor=$1
versions=()
tests=$JOBPOLICY_TESTS
begin=$SECONDS
if [ -e "deploy/local/olderminors/$minor" ]; then
	deploy/local/build-version.sh "$minor"
	export JOBPOLICY_KUBERNETES=$minor
	versions=(--kubernetes-dir="$JOBPOLICY_BIN_DIR/olderminors/$minor")
fi
built=$SECONDS

printf '\n=== Kubernetes %s: example Jobs\n' "$minor"
"$JOBPOLICY_BIN_DIR/jobpolicy-local" demo "${versions[@]}"
printf '\n=== Kubernetes %s: tests\n' "$minor"
go -C test test -count=1 -timeout 30m ./plane/e2e -run "^($tests)"
go -C test test -count=1 -timeout 30m ./upstream/apistatus -run TestTheAPIServerSaysWhatTheRulesSay
printf '\n=== Kubernetes %s: ok; built in %d s, tested in %d s\n' "$minor" $((built - begin)) $((SECONDS - built))
