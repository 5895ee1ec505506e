# Jobs that wait for quota run in the order in which they were created.
quota 1 'queueingStrategy: StrictFIFO,'
for name in a b c d; do
	job $name '' '' 'sleep 1'
	sleep 1
done
for name in a b c d; do until_true job/$name Complete; done
kubectl get jobs --sort-by=.status.startTime -o name
