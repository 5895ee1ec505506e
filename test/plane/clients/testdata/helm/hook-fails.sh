# A hook before the installation fails, then one after it, then a test.
chart
main app 'true'
hook check pre-install '' 'sleep 1; exit 1'
helm_ends install a chart --timeout=60s
jobs_left
rm chart/templates/check.yaml
hook check post-install '' 'sleep 1; exit 1'
helm_ends install b chart --timeout=60s
rm chart/templates/check.yaml
kubectl delete jobs --all
hook check test '' 'sleep 1; exit 1'
helm_ends install c chart --timeout=60s
helm_ends test c --timeout=60s
