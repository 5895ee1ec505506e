package main

import (
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var (
	resource = schema.GroupVersionResource{Group: "example.jobpolicy.dev", Version: "v1", Resource: "trainings"}
	kind     = resource.GroupVersion().WithKind("Training")
)

// Labels of a pod.
const (
	labelGroup   = "example.jobpolicy.dev/group"
	labelAttempt = "example.jobpolicy.dev/attempt"
)

// A Training is the custom resource; crd.yaml has its schema.
type Training struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Groups []struct {
			Name string          `json:"name"`
			Job  batchv1.JobSpec `json:"job"`
		} `json:"groups"`
		FailurePolicy struct {
			MaxRestarts int32    `json:"maxRestarts"`
			FailReasons []string `json:"failReasons"`
		} `json:"failurePolicy"`
		SuccessPolicy struct {
			Groups []string `json:"groups"`
			Count  *int32   `json:"count"`
		} `json:"successPolicy"`
	} `json:"spec"`

	Status struct {
		Phase    string                       `json:"phase,omitempty"` // Complete or Failed.
		Message  string                       `json:"message,omitempty"`
		Restarts int32                        `json:"restarts"`
		Groups   map[string]batchv1.JobStatus `json:"groups"` // Of this attempt.
	} `json:"status"`
}

func (t *Training) attempt() string { return strconv.Itoa(int(t.Status.Restarts)) }

// job is a group as a Job. The groups of a Training that is over are suspended, which
// deletes the pods that still run.
func (t *Training) job(i int) *batchv1.Job {
	g := t.Spec.Groups[i]
	job := &batchv1.Job{ObjectMeta: t.ObjectMeta, Spec: *g.Job.DeepCopy(), Status: t.Status.Groups[g.Name]}
	job.Name = t.Name + "-" + g.Name + "-" + t.attempt()
	job.Spec.Suspend = new(t.Status.Phase != "")
	labels := map[string]string{labelGroup: g.Name, labelAttempt: t.attempt()}
	maps.Copy(labels, job.Spec.Template.Labels)
	job.Spec.Template.Labels = labels
	return job
}

// ends returns how the groups have ended so far: the positions of those that have
// succeeded, and the first that has failed, if any.
func (t *Training) ends() (succeeded []int32, failed string, end *batchv1.JobCondition) {
	for i, g := range t.Spec.Groups {
		switch end := wire.FinishedCondition(t.job(i)); {
		case end == nil:
		case end.Type == batchv1.JobFailed:
			return nil, g.Name, end
		default:
			succeeded = append(succeeded, int32(i))
		}
	}
	return succeeded, "", nil
}

// fail applies the failure policy: because a group has failed, so has the Training, or
// it starts again.
func (t *Training) fail(group string, end *batchv1.JobCondition) {
	policy := t.Spec.FailurePolicy
	t.Status.Message = "group " + group + ": " + end.Reason + ": " + end.Message
	if slices.Contains(policy.FailReasons, end.Reason) || t.Status.Restarts >= policy.MaxRestarts {
		t.Status.Phase = "Failed"
		return
	}
	t.Status.Restarts++
	clear(t.Status.Groups)
}

// successPolicy is the Training's own, with the positions of groups as indexes.
func (t *Training) successPolicy() *jobpolicyv1.SuccessPolicy {
	var matter []int32
	for i, g := range t.Spec.Groups {
		if names := t.Spec.SuccessPolicy.Groups; names == nil || slices.Contains(names, g.Name) {
			matter = append(matter, int32(i))
		}
	}
	return &jobpolicyv1.SuccessPolicy{Rules: []*jobpolicyv1.SuccessPolicyRule{
		{SucceededIndexes: answer.Indexes(matter...), SucceededCount: t.Spec.SuccessPolicy.Count},
	}}
}
