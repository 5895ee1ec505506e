#!/usr/bin/env bash
# Checks the model ledger.pml with Spin, and the invariant invariant.smt2 with z3; docs/proof.md explains both. Prints
# one line for each check. Exit status: 0 when all is well.
#
# Usage: proof/prove.sh quick|small|large
#   quick   a sample of the checks
#   small   all but the large ones
#   large   all
set -euo pipefail
cd "$(dirname "$0")"
size=${1:-}
case $size in quick | small | large) ;; *)
	echo 'usage: prove.sh quick|small|large' >&2
	exit 2
	;;
esac
for tool in spin z3 cpp gcc; do
	if ! command -v "$tool" >/dev/null; then
		echo "prove.sh: $tool is missing (make proof-packages)" >&2
		exit 1
	fi
done
here=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
total=0

# includes reports whether a check of this size is to run.
includes() {
	case $size in
	quick) [ "$1" = quick ] ;;
	small) [ "$1" != large ] ;;
	large) true ;;
	esac
}

# explore FLAGS OPTION... explores the model. $result is all that pan prints; $states and $seconds are read from it.
explore() {
	local flags=$1 since=$EPOCHREALTIME option
	shift
	for option; do
		grep -qE "\b${option%%=*}\b" "$here/ledger.pml" || { echo "prove.sh: ledger.pml has no option ${option%%=*}" >&2; exit 1; }
	done
	cp "$here/ledger.pml" "$scratch"
	result=$(
		cd "$scratch" && rm -f pan*
		spin -a "${@/#/-D}" ledger.pml >spin.out 2>&1 || { cat spin.out; exit 1; }
		# shellcheck disable=SC2086
		cd "$scratch" && gcc -O1 -DNOFAIR -DVECTORSZ=2048 -DMEMLIM=3000 $flags -o pan pan.c && nice -n 10 ./pan -E -m2000000 $([[ $flags == *NP* ]] && echo -l) 2>&1
	) || true
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' <<<"$result" | head -n 1)
	states=$(printf '%.0f' "${states:-0}")
	seconds=$(awk -v a="$since" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
	total=$((total + states))
}

# broken is the rule that an exploration found broken, or cycles if a run goes on for ever; empty: none.
broken() {
	sed -n 's/.*assertion violated.*breaks_\([A-Za-z0-9]*\).*/\1/p' <<<"$result" | head -n 1
	if grep -q 'non-progress cycle' <<<"$(grep '^pan:1' <<<"$result")"; then echo cycles; fi
}

complete() { grep -q 'errors: 0' <<<"$result" && ! grep -qE 'max search depth too small|out of memory|reached -DMEMLIM|Warning: Search not completed' <<<"$result"; }

line() { printf '%-5s %-62s %12s states %7s s\n' "$@"; }

echo '# the protocol: no rule is broken in any reachable state'
while read -r when kind options; do
	if [[ $when == '#'* || -z $when ]] || ! includes "$when"; then continue; fi
	# shellcheck disable=SC2086
	explore "$([ "$kind" = cycles ] && echo -DNP || echo -DSAFETY)" $options
	verdict=ok
	complete || { verdict=FAIL failed=1; }
	line "$verdict" "$kind: $options" "$states" "$seconds"
	[ $verdict = ok ] || grep -E '^pan|errors:|rror' <<<"$result" | head -n 5
done <checks.txt

echo '# changes of the protocol: each is found, within the stated number of states'
while read -r when rule most change options; do
	if [[ $when == '#'* || -z $when ]] || ! includes "$when"; then continue; fi
	# shellcheck disable=SC2086
	explore "$([ "$rule" = cycles ] && echo -DNP || echo -DSAFETY) -O0" "WRONG_$change" $options
	verdict=ok
	[[ $(broken) == "$rule" && $states -le $most ]] || { verdict=FAIL failed=1; }
	line "$verdict" "$change breaks $(broken)" "$states" "$seconds"
	[ $verdict = ok ] || echo "      want $rule within $most states; options $options"
done <changes.txt

echo '# the invariant: every step keeps it, for any number of pods and executors; no clause can be left out'
./invariant.sh "$scratch" || failed=1

echo "$total states in all"
if [ $failed != 0 ]; then
	echo 'make prove: FAILED'
	exit 1
fi
echo 'make prove: ok'
