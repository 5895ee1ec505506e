# A hook takes too long.
chart
hook check pre-install '' 'sleep 100'
helm_ends install a chart --timeout=4s
jobs_left
