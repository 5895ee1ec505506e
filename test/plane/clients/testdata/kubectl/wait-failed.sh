# Somebody waits until a Job is complete, and it fails (kubectl#1629).
job a '' 'sleep 1; exit 1'
until_true job/a Failed
patience 5 kubectl wait --for=condition=complete job/a --timeout=5s
