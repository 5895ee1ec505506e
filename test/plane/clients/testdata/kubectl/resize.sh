# Server-side apply changes the parallelism of a running Job.
manifest a 'completions: 6, parallelism: 1,' 'sleep 3' | kubectl apply --server-side -f -
until_value job/a .status.ready 1
manifest a 'completions: 6, parallelism: 5,' 'sleep 3' | kubectl apply --server-side -f -
until_value job/a .status.active 5
until_true job/a Complete
