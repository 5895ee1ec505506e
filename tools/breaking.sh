#!/usr/bin/env bash
# Compares the contract in the working tree with the ones that landed before it, and fails if a caller of one of them
# would break. Compared with:
#
# - the last commit, when the contract has changed since; otherwise the contract as it was before its last change
# - origin/main, when this clone knows it and it is another commit
#
# Nothing to compare with (a first commit, a clone without history) is said, and passes.
#
# One exception: while no release has the contract (no tag proto/v*), a commit may change v1 in place. It says so in
# its message, on a line that begins with "Breaks-Contract: " and tells what breaks. The contracts before such a
# commit are not compared with. The numbers and names of fields that go are free to be used again, because nobody has
# the old ones. From the first tag on the line has no effect.
set -euo pipefail
cd "$(dirname "$0")/.."

proto=':(glob)proto/**/*.proto'

# before prints the commit whose contract came before the one in the working tree; nothing if there is none.
before() {
	git rev-parse --quiet --verify HEAD >/dev/null || return 0
	if [[ -n $(git status --porcelain -- "$proto") ]]; then
		git rev-parse HEAD
		return
	fi
	local changed
	changed=$(git log -1 --format=%H -- "$proto")
	[[ -n $changed ]] || return 0
	git rev-parse --quiet --verify "$changed^" || true
}

# upstream prints the commit of origin/main when it is known and not the one checked out.
upstream() {
	local main
	main=$(git rev-parse --quiet --verify origin/main) || return 0
	[[ $main == "$(git rev-parse --quiet --verify HEAD || true)" ]] || echo "$main"
}

if ! git rev-parse --git-dir >/dev/null 2>&1; then
	echo 'this is no git clone, so no earlier contract is known: nothing to compare with'
	exit 0
fi

old=$(mktemp -d)
trap 'rm -rf "$old"' EXIT

# broken prints why the contract of a commit is not compared with: a commit since then breaks it in place. Nothing if
# none does, or if a release has the contract.
broken() {
	[[ -z $(git tag --list 'proto/v*') ]] || return 0
	git log --format='%(trailers:key=Breaks-Contract,valueonly,separator=%x3B )' "$1..HEAD" -- "$proto" | grep -v '^$' || true
}

compared=0
failed=0
for commit in $({ before; upstream; } | sort -u); do
	[[ -n $(git ls-tree -r --name-only "$commit" -- proto buf.yaml | grep '\.proto$') ]] || continue
	why=$(broken "$commit")
	if [[ -n $why ]]; then
		echo "not compared with $(git log -1 --format='%h (%cs, %s)' "$commit"): v1 is not released, and was changed in place since:"
		sed 's/^/  /' <<<"$why"
		compared=$((compared + 1))
		continue
	fi
	mkdir "$old/$commit"
	git archive "$commit" -- buf.yaml proto | tar -x -C "$old/$commit"
	echo "comparing with $(git log -1 --format='%h (%cs, %s)' "$commit")"
	.bin/buf breaking --against "$old/$commit" || failed=1
	compared=$((compared + 1))
done

((compared > 0)) || echo 'no earlier contract is known: nothing to compare with'
exit "$failed"
