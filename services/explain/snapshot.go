package explain

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/engine/snapshot"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/podfacts"
)

// Facts hold what was read of a Job.
type Facts struct {
	Job  *batchv1.Job
	Pods []corev1.Pod
	// NotStarting is how many pods cannot start, if Pods has only an example of them.
	NotStarting int
	// OptionsFrom says where the Job's options are (wire.PolicyOrigin), if its annotations, which hold them, do not say
	// that any more.
	OptionsFrom string
	// Events are those on the Job, PodEvents those on its pods by pod name.
	Events    []corev1.Event
	PodEvents map[string][]corev1.Event
	// Nodes are the states of the nodes of pods that are being deleted, by name, as far as they are known. Read only
	// for a Job that ReadsNodes.
	Nodes map[string]jobpolicyv1.NodeState
	// Refusals are the refused writes that the controller knows of, for Recorded. Explain reads Events.
	Refusals []writes.Refusal
	Now      time.Time
	// Unread says what could not be read, and why.
	Unread []string
}

// Decide asks an engine.
type Decide func(*jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error)

// ask builds the snapshot and asks the engine, and asks a second time if the engine needs
// the rows of active pods.
func ask(f Facts, decide Decide) (*jobpolicyv1.DecideJobResponse, error) {
	req, err := Request(f, false)
	if err != nil {
		return nil, err
	}
	resp, err := decide(req)
	if err != nil || resp.GetDisposition() != jobpolicyv1.Disposition_DISPOSITION_INCOMPLETE {
		return resp, err
	}
	if req, err = Request(f, true); err != nil {
		return nil, err
	}
	return decide(req)
}

// Request is the snapshot of a Job that the engine gets.
func Request(f Facts, activePods bool) (*jobpolicyv1.DecideJobRequest, error) {
	job, err := wire.JobRequest(f.Job)
	if err != nil {
		return nil, err
	}
	var pods []snapshot.Pod
	for i := range f.Pods {
		pod, err := wire.Pod(&f.Pods[i])
		if err != nil {
			return nil, err
		}
		pod.Node = f.node(&f.Pods[i])
		pods = append(pods, pod)
	}
	req := snapshot.Request(job.GetSpec(), job.GetStatus(), pods, snapshot.Options{ActivePods: activePods, Now: f.Now})
	req.Now = timestamppb.New(f.Now)
	req.Job = job.GetJob()
	return req, nil
}

// ReadsNodes reports whether it matters for the Job whether nodes are Ready.
func ReadsNodes(job *batchv1.Job) bool {
	policy, _ := wire.PolicySpec(job.Annotations)
	return podfacts.ReadsNodes(policy.GetJob())
}

// node is the state of a pod's node. A pod that is being deleted and has none gets none any more.
func (f *Facts) node(p *corev1.Pod) jobpolicyv1.NodeState {
	if p.Spec.NodeName == "" {
		return jobpolicyv1.NodeState_NODE_STATE_GONE
	}
	return f.Nodes[p.Spec.NodeName]
}
