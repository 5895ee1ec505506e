# The workload of a running Job is deactivated and activated again, ten times.
quota 2
job a '' 'completions: 2, parallelism: 2,' 'sleep 300'
workload=$(until kubectl get workloads -o name | grep .; do sleep 0.2; done)
for i in $(seq 10); do
	until_value job/a .status.ready 2 >/dev/null
	kubectl patch "$workload" --type=merge -p '{"spec":{"active":false}}' >/dev/null
	until_true "$workload" Admitted=false >/dev/null
	kubectl wait --for=delete pod --all --timeout=60s >/dev/null
	kubectl patch "$workload" --type=merge -p '{"spec":{"active":true}}' >/dev/null
done
measure eviction 'workload job-a-~: Evicted=True' 'workload job-a-~: Admitted=False'
