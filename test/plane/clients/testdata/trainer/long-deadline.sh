# A deadline of 317 years is one that does not matter.
runtime a 'sleep 2'
trainjob a 'activeDeadlineSeconds: 10000000000,'
ended() { kubectl get trainjob a -o jsonpath='{.status.conditions[?(@.status=="True")].type}' | grep -E 'Complete|Failed'; }
until ended >/dev/null; do sleep 0.3; done
ended
until_inactive
