# Three hundred Jobs at once, of which twenty may run.
quota 20
for i in $(seq 300); do
	printf '{apiVersion: batch/v1, kind: Job, metadata: {name: j%d, labels: {kueue.x-k8s.io/queue-name: q}}, spec: {suspend: true, %s}}\n---\n' \
		$i "$(pod 'sleep 0.5' | sed 's/{name: main,/& resources: {requests: {cpu: 1}},/')"
done | create | wc -l
kubectl wait --for=condition=Complete job --all --timeout=500s | wc -l
pods_at_most 20
