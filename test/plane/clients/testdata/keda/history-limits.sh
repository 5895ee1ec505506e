# Of the Jobs that succeed the newest is kept, of those that fail none.
messages 1
scaledjob 'maxReplicaCount: 1, successfulJobsHistoryLimit: 1, failedJobsHistoryLimit: 0,' "$(work "[ ! -e $PWD/fail ]")"

# complete prints the UIDs of the Jobs that are complete.
complete() { kubectl get jobs -o jsonpath='{range .items[?(@.status.succeeded==1)]}{.metadata.uid} {end}'; }

poll
running 1
let_one_end
ended 1 Complete
first=$(complete)
poll
running 1
let_one_end
ended 2 Complete
poll # one Job is made, one is deleted
running 1
ended 1 Complete
second=$(complete)
[ "$second" != "$first" ]
touch fail
let_one_end
ended 1 Failed
poll
running 1
ended 0 Failed
rm fail
messages 0
let_one_end
ended 2 Complete
poll
ended 1 Complete
[ "$(complete)" != "$second" ]
