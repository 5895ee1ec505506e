# An upgrade whose Job fails goes back to what was.
chart
main first 'true'
helm_ends install a chart --wait --wait-for-jobs --timeout=60s
main second 'sleep 1; exit 1'
helm_ends upgrade a chart --rollback-on-failure --wait --wait-for-jobs --timeout=15s
helm history a | sed 's/	/ /g'
jobs_left
