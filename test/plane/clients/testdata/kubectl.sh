# For scenarios of kubectl.

# job NAME FIELDS COMMAND creates a Job. FIELDS are some of its spec, in flow style, each with a comma behind it. $BACKOFF is its
# backoffLimit.
job() { manifest "$@" | create; }

# manifest prints such a Job.
manifest() {
	printf 'apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s}\nspec: {backoffLimit: %d, %s %s}\n' "$1" "${BACKOFF:-0}" "$2" "$(pod "$3")"
}

# pods_let_go waits until the pods have neither finalizers nor owners.
pods_let_go() { until_prints '' kubectl get pods -o jsonpath='{.items[*].metadata.finalizers}{.items[*].metadata.ownerReferences}'; }

# events prints how many events about Jobs there are.
events() { kubectl get events --field-selector=involvedObject.kind=Job -o name | wc -l; }
