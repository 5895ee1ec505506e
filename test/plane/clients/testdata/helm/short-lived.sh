# A Job of a chart fails, and its time to live ends at once, so that nobody sees that it failed (helm#30533).
chart
main app 'sleep 1; exit 1' 'ttlSecondsAfterFinished: 0,'
for way in watcher legacy; do
	echo "$way"
	patience 15 helm install $way chart --wait=$way --wait-for-jobs --timeout=15s
done
jobs_left
