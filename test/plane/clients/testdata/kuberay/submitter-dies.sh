# Somebody deletes the submitter's pod while the Ray job runs: the RayJob fails, and says of its Ray job that it runs on (kuberay#2314).
rayjob '' "$(ray RUNNING); $(wait_for end)"
until_value rayjob/a .status.jobStatus RUNNING
kubectl delete pods -l job-name=a >/dev/null
deployed Failed
