#!/usr/bin/env bash
# Asks z3 whether each step keeps the invariant of invariant.smt2, and whether z3 notices each clause that is left out.
# Prints one line for each question.
#
# Usage: invariant.sh SCRATCH-FOLDER
set -euo pipefail
cd "$(dirname "$0")"
scratch=$1
clauses=11
steps='start podEnds watchPod readJob listPods writeStatus release restart'
failed=0

# ask OPTION... prints what z3 answers.
ask() {
	cpp -P "$@" invariant.smt2 2>/dev/null | grep -v '^;' >"$scratch/invariant.smt2"
	nice -n 10 z3 -T:60 "$scratch/invariant.smt2" | head -n 1
}

report() { # what, answer, wanted answer, since
	local verdict=ok
	[ "$2" = "$3" ] || { verdict=FAIL failed=1; }
	printf '%-5s %-62s %19s %7s s\n' $verdict "$1" "$2" "$(awk -v a="$4" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')"
}

for step in $steps; do
	since=$EPOCHREALTIME
	report "invariant: $step" "$(ask -DSTEP_"$step")" unsat "$since"
done
# Without a clause, a step breaks another one, or the rules do not follow any more.
for ((n = 1; n <= clauses; n++)); do
	since=$EPOCHREALTIME
	noticed=
	for step in IMPLIES $steps; do
		option=-DSTEP_$step
		[ $step = IMPLIES ] && option=-DIMPLIES
		answer=$(ask "$option" -DWITHOUT=$n)
		if [ "$answer" != unsat ]; then
			noticed=$step
			break
		fi
	done
	report "invariant without clause $n: noticed at ${noticed:-nothing}" "${answer}" sat "$since"
done
exit $failed
