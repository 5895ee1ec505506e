# Each index may fail by itself, but only one may.
jobset a <<Y
replicatedJobs:
$(BACKOFF=100 group workers 1 3 'test $JOB_COMPLETION_INDEX = 0 && sleep 100; sleep $JOB_COMPLETION_INDEX; exit 1' 'completionMode: Indexed, backoffLimitPerIndex: 0, maxFailedIndexes: 1,')
Y
until_true jobset/a Failed
