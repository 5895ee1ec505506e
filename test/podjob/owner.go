package podjob

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	namespace = "default"
	// groupAnnotation says for which group podjob has created a pod.
	groupAnnotation = "jobpolicy.dev/group"
)

var kind = schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Training"}

// An owner is the object that controls the pods and keeps the groups' statuses.
type owner struct {
	*world
	meta    metav1.ObjectMeta
	version int // Of all writes of the object.
	groups  []*group
	gone    bool
}

// A group is a group of pods.
type group struct {
	name string
	plan *groupPlan
	job  *batchv1.Job // As it is stored.
	view *view        // Of its last Step.
	// decided is the spec with which its end was decided; nil: it goes on.
	decided *batchv1.JobSpec
	failed  time.Time // When a creation of this controller failed last.
}

// A view is what a Step was given.
type view struct {
	at     time.Time
	losses int // Of the judge, at that time.
	job    *batchv1.Job
	pods   []corev1.Pod
}

func newOwner(w *world) *owner {
	o := &owner{world: w, meta: metav1.ObjectMeta{Namespace: namespace, Name: "train", UID: "00000000-0000-4000-8000-000000000001"}}
	for i := range w.plan.groups {
		p := &w.plan.groups[i]
		o.groups = append(o.groups, &group{name: p.name, plan: p, job: &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.name, Generation: 1}, Spec: *p.spec.DeepCopy(),
		}})
	}
	return o
}

func (o *owner) reference() metav1.OwnerReference { return *metav1.NewControllerRef(&o.meta, kind) }

func (o *owner) group(name string) *group {
	for _, g := range o.groups {
		if g.name == name {
			return g
		}
	}
	return nil
}

// controls reports whether the owner controls the pod.
func (o *owner) controls(pod *corev1.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(pod)
	return ref != nil && ref.UID == o.meta.UID && ref.Kind == kind.Kind
}

// edit changes a group's spec as a user does.
func (o *owner) edit(g *group, change func(*batchv1.JobSpec)) {
	if o.gone || finished(&g.job.Status) != "" {
		return
	}
	change(&g.job.Spec)
	g.job.Generation++
	o.judge.losses++
	o.written()
	o.judge.othersActed()
}

// written is what follows from each write of the object.
func (o *owner) written() {
	o.version++
	o.after(o.delay(), func() { o.changed = true })
}

// delete deletes the object. Its pods are removed by the controller.
func (o *owner) delete() {
	o.notef("user: delete the owner")
	o.came(ownerDeleted)
	o.gone = true
	o.written()
	o.judge.othersActed()
}

var errConflict = apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: "trainings"}, "train", errors.New("it has changed"))

// writer returns Group.WriteStatus for a Step that has read the given version of the object.
func (o *owner) writer(g *group, read *int) func(context.Context, batchv1.JobStatus) error {
	life := o.lives
	return func(_ context.Context, status batchv1.JobStatus) error {
		if o.pass(o.delay()); o.lives != life {
			return errDead
		}
		at, seen := *read, g.view
		write := func() error {
			if o.gone || o.version != at {
				return errConflict
			}
			o.store(g, seen, status)
			*read = o.version
			return nil
		}
		switch o.fault("status") {
		case "":
			return write()
		case statusConflicts:
			return errConflict
		case answerIsLost:
			_ = write()
			*read = at // The caller does not know what it has written.
		case takesEffectLate:
			o.after(o.within(100*time.Millisecond, 20*time.Second), func() { _ = write() })
		}
		return errNoAnswer
	}
}

// store writes a status as the API server would: in JSON, with times in whole seconds.
func (o *owner) store(g *group, seen *view, status batchv1.JobStatus) {
	data, err := json.Marshal(status)
	var stored batchv1.JobStatus
	if err = errors.Join(err, json.Unmarshal(data, &stored)); err != nil {
		panic(err) // A status has nothing that JSON cannot say.
	}
	o.tally.writes++
	old := g.job.Status
	g.job.Status = stored
	o.written()
	o.judge.status(g, seen, &old, &stored)
}

func condition(status *batchv1.JobStatus, wanted ...batchv1.JobConditionType) batchv1.JobConditionType {
	for _, c := range status.Conditions {
		for _, t := range wanted {
			if c.Type == t && c.Status == corev1.ConditionTrue {
				return t
			}
		}
	}
	return ""
}

// finished returns the condition that ends a group; empty: it goes on.
func finished(status *batchv1.JobStatus) batchv1.JobConditionType {
	return condition(status, batchv1.JobComplete, batchv1.JobFailed)
}
