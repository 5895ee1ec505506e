# Thirty Jobs at once, of which eight may run.
quota 8
for i in $(seq 30); do
	manifest j$i '' '' 'sleep 0.5'
	echo ---
done | create | wc -l
kubectl wait --for=condition=Complete job --all --timeout=240s | wc -l
