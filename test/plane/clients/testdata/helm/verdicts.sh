# The same by the way that Helm 4 prefers, which reads conditions.
install() {
	chart
	rm -f chart/templates/*
	BACKOFF=$2 main "$1" "$3" "$4"
	echo "$1"
	patience 40 helm install "$1" chart --wait=watcher --wait-for-jobs --timeout=40s
}
install deadline 6 'sleep 100' 'activeDeadlineSeconds: 1,'
install exit-code 6 'exit 3' 'podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [3]}}]},'
install index 6 'exit 1' 'completions: 1, completionMode: Indexed, backoffLimitPerIndex: 0, maxFailedIndexes: 0,'
install backoff-limit 0 'exit 1' ''
