# Somebody deletes the Jobs of twenty JobSets in the foreground while their pods run. None may count as failed: JobSet creates
# each again.
for i in $(seq 20); do
	jobset c$i <<-Y
		replicatedJobs:
		$(group workers 1 2 'sleep 8')
	Y
done >/dev/null
until [ "$(kubectl get jobs -o jsonpath='{range .items[?(@.status.ready==2)]}x{end}')" = xxxxxxxxxxxxxxxxxxxx ]; do sleep 0.3; done
kubectl delete jobs --all --cascade=foreground >/dev/null
until [ "$(kubectl get jobsets -o jsonpath='{range .items[?(@.status.terminalState)]}x{end}')" = xxxxxxxxxxxxxxxxxxxx ]; do sleep 0.3; done
completed=$(kubectl get jobsets -o jsonpath='{range .items[?(@.status.terminalState=="Completed")]}x{end}' | wc -c)
echo "created again: $completed of 20"
[ "$SIDE" = builtin ] || [ "$completed" = 20 ]
