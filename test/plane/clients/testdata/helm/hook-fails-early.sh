# A hook fails long before the timeout (helm#31690).
chart
hook check pre-install '' 'sleep 1; exit 1'
patience 40 helm install a chart --timeout=40s
