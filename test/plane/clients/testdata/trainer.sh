# For scenarios of Trainer. A runtime is what a TrainJob is made from.

# runtime NAME COMMAND [JOBSET] makes a runtime whose one pod runs a command. JOBSET are further fields of the JobSets that are made
# from it, in flow style, each with a comma behind it.
runtime() {
	printf '{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: %s, labels: {trainer.kubeflow.org/framework: none}}, spec: {template: {spec: {%s replicatedJobs: [{name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {backoffLimit: 0, %s}}}]}}}}\n' \
		"$1" "${3:-}" "$(pod "$2" | sed 's/{name: main,/{name: node,/')" | create
}

# trainjob NAME FIELDS [RUNTIME] makes a TrainJob from the runtime RUNTIME, or NAME. FIELDS are further ones of its spec, in flow
# style, each with a comma behind it.
trainjob() {
	printf '{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: %s}, spec: {%s runtimeRef: {apiGroup: trainer.kubeflow.org, kind: TrainingRuntime, name: %s}}}\n' \
		"$1" "$2" "${3:-$1}" | create
}
