# Three hundred Jobs at once, of which twenty may run.
quota 20
for i in $(seq 300); do
	manifest j$i '' '' 'sleep 0.5'
	echo ---
done | create | wc -l
kubectl wait --for=condition=Complete job --all --timeout=500s | wc -l
pods_at_most 20
