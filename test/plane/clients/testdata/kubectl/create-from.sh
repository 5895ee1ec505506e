# A CronJob is started by hand.
kubectl create cronjob a --image="${IMAGE:-none}" --schedule='0 0 1 1 *' -- sh -c 'sleep 1'
kubectl create job b --from=cronjob/a
until_true job/b Complete
kubectl get job b -o jsonpath='{.metadata.annotations}{" "}{.metadata.ownerReferences[*].name}{"\n"}'
