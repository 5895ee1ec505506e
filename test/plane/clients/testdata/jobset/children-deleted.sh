# Somebody deletes the Jobs of twenty JobSets in the foreground while their pods run. None may count as failed: JobSet creates
# each again.

# ready prints how many Jobs have two pods that are ready; failed, how many JobSets have failed.
ready() { kubectl get jobs -o jsonpath='{range .items[?(@.status.ready==2)]}x{end}' | wc -c; }
failed() { kubectl get jobsets -o jsonpath='{range .items[?(@.status.terminalState=="Failed")]}x{end}' | wc -c; }

for i in $(seq 20); do
	create() { cat; }
	jobset c$i <<-Y
		replicatedJobs:
		$(group workers 1 2 'sleep 1000')
	Y
	echo ---
done | kubectl create -f - >/dev/null
until_prints 20 ready
kubectl delete jobs --all --cascade=foreground >/dev/null
until [ "$(($(ready) + $(failed)))" = 20 ]; do sleep 0.5; done
echo "created again: $(ready) of 20"
[ "$SIDE" != ours ] || [ "$(failed)" = 0 ]
