# Jobs of a chart fail by a deadline, by an exit code, by an index, and by their backoffLimit. The older way to wait compares
# status.failed with backoffLimit, so it sees only the last one, and tries again all the same (helm#9285).
install() {
	chart
	rm -f chart/templates/*
	BACKOFF=$2 main "$1" "$3" "$4"
	echo "$1"
	patience 15 helm install "$1" chart --wait=legacy --wait-for-jobs --timeout=15s
}
install deadline 6 'sleep 100' 'activeDeadlineSeconds: 1,'
install exit-code 6 'exit 3' 'podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [3]}}]},'
install index 6 'exit 1' 'completions: 1, completionMode: Indexed, backoffLimitPerIndex: 0, maxFailedIndexes: 0,'
install backoff-limit 0 'exit 1' ''
