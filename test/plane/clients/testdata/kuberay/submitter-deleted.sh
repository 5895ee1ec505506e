# Somebody deletes the submitter's Job. KubeRay does not make it again, and waits for it until somebody ends that.
rayjob 'shutdownAfterJobFinishes: true,' "$(ray RUNNING); $(wait_for end)"
until_value rayjob/a .status.jobStatus RUNNING
kubectl delete job a
patience 10 kubectl wait --for=jsonpath=.status.jobDeploymentStatus=Failed rayjob/a --timeout=10s
kubectl get rayjob a -o jsonpath='{.status.jobDeploymentStatus}{"\n"}'
kubectl delete rayjob a
until_gone jobs,pods,rayclusters
