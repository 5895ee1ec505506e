# For scenarios of Helm. The chart is the folder chart.

# chart makes a chart that has nothing in it.
chart() {
	mkdir -p chart/templates
	printf 'apiVersion: v2\nname: chart\nversion: 0.1.0\n' >chart/Chart.yaml
}

# main NAME COMMAND [FIELDS] adds a Job that runs a command to the chart. FIELDS are some of its spec, in flow style, each with a comma
# behind it. $BACKOFF is its backoffLimit.
main() { template "$1" '' "$2" "${3:-}"; }

# hook NAME EVENTS POLICIES COMMAND adds a Job that Helm runs at EVENTS, and deletes as POLICIES say (none: before the next).
hook() { template "$1" "helm.sh/hook: '$2'${3:+, helm.sh/hook-delete-policy: '$3'}" "$4"; }

template() {
	printf 'apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s, annotations: {%s}}\nspec: {backoffLimit: %d, %s %s}\n' "$1" "$2" "${BACKOFF:-0}" "${4:-}" "$(pod "$3")" >"chart/templates/$1.yaml"
}

# helm_ends ARGUMENT... runs Helm, which may fail, and prints its exit code.
helm_ends() {
	local code=0
	helm "$@" 2>&1 || code=$?
	echo "exit code $code"
}

# jobs_left prints the Jobs that are there.
jobs_left() { kubectl get jobs -o name; }
