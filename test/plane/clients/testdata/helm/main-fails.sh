# A Job of the chart itself fails while Helm waits for it, by the watcher and by the older way.
chart
main app 'sleep 1; exit 1'
helm_ends install a chart --wait=watcher --wait-for-jobs --timeout=15s
kubectl delete jobs --all
helm_ends install b chart --wait=legacy --wait-for-jobs --timeout=15s
