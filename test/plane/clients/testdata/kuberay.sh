# For scenarios of KubeRay. The pods of Ray clusters run nothing, and what Ray says of its jobs is in files.

# rayjob FIELDS COMMAND makes the RayJob a, whose submitter runs a command. FIELDS are some of its spec, in flow style, each with a comma
# behind it. $BACKOFF is the backoffLimit of the submitter's Job.
rayjob() {
	printf '{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: a}, spec: {%s entrypoint: none, submitterConfig: {backoffLimit: %d}, %s, rayClusterSpec: {rayVersion: 2.46.0, headGroupSpec: {rayStartParams: {}, %s}}}}\n' \
		"$1" "${BACKOFF:-0}" "$(pod "$2" | sed 's/^template/submitterPodTemplate/')" \
		"$(pod 'sleep 1000' | sed 's/Never/Always/; s/^template: {/&metadata: {annotations: {ray.io\/overwrite-container-cmd: "true"}}, /')" | create
}

# ray STATUS prints a command with which the submitter lets Ray say a status of its job.
ray() { echo "echo $1 >$RAY_JOBS/\$RAY_JOB_SUBMISSION_ID"; }

# wait_for FILE prints a command that waits until the scenario makes a file.
wait_for() { echo "until [ -e $PWD/$1 ]; do sleep 0.3; done"; }

# deployed STATUS waits until the RayJob has a status, and prints what KubeRay says of that.
deployed() {
	until_value rayjob/a .status.jobDeploymentStatus "$1"
	kubectl get rayjob a -o jsonpath='{.status.jobStatus} {.status.reason} {.status.message}{"\n"}'
}

# no_cluster waits until the Ray cluster and its pods are gone.
no_cluster() {
	until_gone rayclusters
	until_gone pods -l ray.io/node-type
}
