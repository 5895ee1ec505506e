# What every scenario may use. The namespace of the scenario is that of kubectl and helm.
set -euo pipefail

# pod COMMAND prints the template of pods that run a shell command, on one line.
# $ATTEMPT is how often the JobSet of the pod has begun again, $JOB_COMPLETION_INDEX the pod's index.
pod() {
	local attempt="{name: ATTEMPT, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['jobset.sigs.k8s.io/restart-attempt']\"}}}"
	printf 'template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [{name: main, image: "%s", command: [sh, -c, "%s"], env: [%s]}]}}' "${IMAGE:-none}" "$1" "$attempt"
}

# create applies the manifest that it reads.
create() { kubectl create -f -; }

# until_true OBJECT CONDITION waits until an object exists and has a condition, Type or Type=Status.
until_true() {
	kubectl wait --for=create "$1" --timeout=60s >/dev/null
	kubectl wait --for=condition="$2" "$1" --timeout=120s
}

# until_value OBJECT JSONPATH VALUE waits until an object exists and a field of it has a value.
until_value() {
	kubectl wait --for=create "$1" --timeout=60s >/dev/null
	kubectl wait --for=jsonpath="$2"="$3" "$1" --timeout=120s
}

# until_prints TEXT COMMAND... runs a command again and again, until it prints a text; empty: nothing.
until_prints() {
	local text=$1
	shift
	until [ "$("$@")" = "$text" ]; do sleep 0.3; done
}

# until_gone RESOURCES... waits until there is no object of these resources, which kubectl gets.
until_gone() { until_prints '' kubectl get "$@" -o name; }

# until_inactive waits until no Job is active.
until_inactive() { until_prints '' kubectl get jobs -o jsonpath='{.items[*].status.active}'; }

# patience SECONDS COMMAND... runs a command whose timeout is SECONDS, and prints whether it waits that long, and its exit code.
# What it prints does not count.
patience() {
	local seconds=$1 begin=$SECONDS code=0
	shift
	"$@" >/dev/null 2>&1 || code=$?
	if [ $((SECONDS - begin)) -ge "$seconds" ]; then
		echo "waits until its timeout, exit code $code"
	else
		echo "ends before its timeout, exit code $code"
	fi
}

# measure NAME FROM TO reports the time between two lines of the history, named by how they begin. It is shown side by
# side, and not compared.
measure() { echo "measure $1|$2|$3"; }

# pods_at_most N makes the scenario fail if there ever were more than N pods at a time that had not ended.
pods_at_most() { echo "pods at most $1"; }
