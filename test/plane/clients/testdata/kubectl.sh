# For scenarios of kubectl.

# job NAME FIELDS COMMAND creates a Job. FIELDS are some of its spec, in flow style, each with a comma behind it. $BACKOFF is its
# backoffLimit.
job() { manifest "$@" | create; }

manifest() {
	printf 'apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s}\nspec: {backoffLimit: %d, %s %s}\n' "$1" "${BACKOFF:-0}" "$2" "$(pod "$3")"
}

# no_pods waits until there are no pods.
no_pods() { until [ -z "$(kubectl get pods -o name)" ]; do sleep 0.3; done; }
