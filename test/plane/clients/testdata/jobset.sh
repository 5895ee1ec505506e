# For scenarios of JobSet.

# jobset NAME reads the spec of a JobSet, and creates it.
jobset() {
	{
		printf 'apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s}\nspec:\n' "$1"
		sed 's/^/  /'
	} | create
}

# group NAME REPLICAS PODS COMMAND [JOB [GROUP]] prints a replicated Job, on one line. PODS run at the same time. JOB and
# GROUP are further fields of the spec of its Jobs and of itself, in flow style, each with a comma behind it. $BACKOFF is
# the backoffLimit of its Jobs.
group() {
	printf -- '- {name: %s, replicas: %d, %s template: {spec: {parallelism: %d, completions: %d, backoffLimit: %d, %s %s}}}\n' \
		"$1" "$2" "${6:-}" "$3" "$3" "${BACKOFF:-0}" "${5:-}" "$(pod "$4")"
}
