# Helm installs a chart with a hook before and one after, and waits for its Jobs. It tests it, upgrades it, rolls it back and
# uninstalls it.
chart
main app 'sleep 1'
for event in pre-install post-install pre-upgrade post-upgrade pre-rollback post-rollback pre-delete post-delete; do
	hook "$event" "$event" before-hook-creation 'sleep 1'
done
hook passes test '' 'sleep 1'
helm_ends install a chart --wait --wait-for-jobs --timeout=60s
helm_ends test a --timeout=60s
sed -i 's/version: .*/version: 0.2.0/' chart/Chart.yaml
main second 'sleep 1'
helm_ends upgrade a chart --wait --wait-for-jobs --timeout=60s
helm_ends rollback a 1 --wait --wait-for-jobs --timeout=60s
helm history a | sed 's/	/ /g'
helm_ends uninstall a --wait --timeout=60s
jobs_left
