# The Ray job fails, and the RayJob tries once more with another cluster and another submitter.
rayjob 'backoffLimit: 1,' "[ -e $PWD/tried ] && { $(ray SUCCEEDED); exit 0; }; touch $PWD/tried; $(ray FAILED); $(wait_for seen); exit 1"
until_value rayjob/a .status.jobStatus FAILED
touch seen
deployed Complete
kubectl get rayjob a -o jsonpath='{.status.failed} failed, {.status.succeeded} succeeded{"\n"}'
