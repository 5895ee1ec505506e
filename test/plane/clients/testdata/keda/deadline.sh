# A Job passes its deadline, and expires: its message waits still, and gets another Job.
messages 1
scaledjob 'maxReplicaCount: 1,' "$(work)" 'activeDeadlineSeconds: 5, ttlSecondsAfterFinished: 0,'
poll
until_gone jobs,pods
poll
messages 0
poll
until_gone jobs,pods
