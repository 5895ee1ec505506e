# A running Job is suspended and resumed.
job a 'completions: 2, parallelism: 2,' 'sleep 4'
until_value job/a .status.ready 2
kubectl patch job a --type=merge -p '{"spec":{"suspend":true}}'
until_true job/a Suspended
until_gone pods
kubectl patch job a --type=merge -p '{"spec":{"suspend":false}}'
until_true job/a Complete
