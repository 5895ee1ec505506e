# Helm deletes the Jobs of hooks before the next one, when they succeed, and when they fail.
chart
main app 'sleep 1'
hook before pre-upgrade,pre-install before-hook-creation 'true'
hook succeeded pre-install hook-succeeded 'true'
hook failed-only pre-install hook-failed 'true'
hook both pre-upgrade hook-succeeded,hook-failed 'exit 1'
helm_ends install a chart --wait --wait-for-jobs --timeout=60s
jobs_left
helm_ends upgrade a chart --timeout=60s
jobs_left
