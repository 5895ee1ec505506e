# A Job that is created suspended is resumed before a second has passed.
job a 'suspend: true,' 'sleep 1'
kubectl patch job a --type=merge -p '{"spec":{"suspend":false}}'
until_true job/a Complete
