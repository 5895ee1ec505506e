# The RayJob is active for too long. Its submitter runs on, and the RayJob says RUNNING of its Ray job (kuberay#2314): KubeRay only deletes the cluster.
rayjob 'activeDeadlineSeconds: 20, shutdownAfterJobFinishes: true,' "$(ray RUNNING); $(wait_for end)"
until_value rayjob/a .status.jobStatus RUNNING
until_value rayjob/a .status.jobDeploymentStatus Failed
no_cluster
kubectl get job a -o jsonpath='{.status.active} active{"\n"}'
kubectl get rayjob a -o jsonpath='{.status.jobStatus}{"\n"}'
touch end
until_true job/a Complete
