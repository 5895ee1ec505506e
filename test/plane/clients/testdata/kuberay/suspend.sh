# Somebody suspends the RayJob while its submitter runs, and resumes it.
rayjob 'shutdownAfterJobFinishes: true,' "$(ray RUNNING); $(wait_for end); $(ray SUCCEEDED)"
until_value rayjob/a .status.jobStatus RUNNING
kubectl patch rayjob a --type=merge -p '{"spec":{"suspend":true}}'
until_value rayjob/a .status.jobDeploymentStatus Suspended
until_gone jobs,pods
kubectl patch rayjob a --type=merge -p '{"spec":{"suspend":false}}'
until_value rayjob/a .status.jobStatus RUNNING
touch end
deployed Complete
no_cluster
