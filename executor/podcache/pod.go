package podcache

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/proto/jobend"
	"jobpolicy.dev/proto/podfacts"
)

// ResourceStepAnnotation says how often the resources of a pod had been raised when it was created
// (options.next_try_resources). A pod without it has what the template says.
const ResourceStepAnnotation = "jobpolicy.dev/resource-step"

// KeepTerminationMessageAnnotation says that the Job of a pod asked, when the pod was created, for what its containers
// say at their end (options.end_condition_failures). Of other pods a cache keeps none of that, which may be secret and long.
// It stands on the pod, because pods are decoded before anybody knows the options of their Jobs.
const KeepTerminationMessageAnnotation = "jobpolicy.dev/keep-termination-message"

// NoIndex is the index of a pod without a valid completion index.
const NoIndex int32 = -1

// maxIndex is the highest index that the contract allows.
const maxIndex = 1<<31 - 2

// Pod has the facts about a pod that policy or the executor reads. It never changes.
// Times that are not known are zero.
type Pod struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	Labels          Labels
	// Created is metadata.creationTimestamp.
	Created time.Time
	// HasTrackingFinalizer: the pod has the finalizer batch.kubernetes.io/job-tracking.
	HasTrackingFinalizer bool
	// Scheduled: the pod has a node.
	Scheduled bool
	// HasRun: one of its containers has run, init containers aside.
	HasRun bool
	// ResourceStep is how often the pod's resources had been raised when it was created: the
	// annotation ResourceStepAnnotation, 0 to podfacts.MaxResourceStep.
	ResourceStep uint8

	Indexing // Placed here, it fills the padding after the booleans.
	Deletion
	Readiness
	Containers
	interned
}

// Deletion says whether somebody has asked for the pod's deletion, and when.
type Deletion struct {
	Deleting bool
	// GraceSeconds is the grace period, at least 0.
	GraceSeconds int32
	// DeletionAsked is when the deletion was asked for: deletionTimestamp less the grace period.
	DeletionAsked time.Time
}

// DeletionDue is when the pod was to be gone: metadata.deletionTimestamp. Zero: it is not being deleted.
func (d *Deletion) DeletionDue() time.Time {
	if !d.Deleting {
		return time.Time{}
	}
	return d.DeletionAsked.Add(time.Duration(d.GraceSeconds) * time.Second)
}

// Readiness is the pod's Ready condition: true or false since ReadyChanged. If neither
// Ready nor Unready is set, it is not known.
type Readiness struct {
	Ready, Unready bool

	// taken: a node took the pod, takenAfter seconds after it was created (Started). Placed here, they fill the
	// padding after the booleans.
	taken      bool
	takenAfter int32

	ReadyChanged time.Time
}

// Indexing is the pod's part in an Indexed Job.
type Indexing struct {
	// Index is the completion index, or NoIndex.
	Index int32
	// IndexFailures and IndexIgnoredFailures count earlier failures of the index; 0 if
	// the annotation is absent or not a count.
	IndexFailures, IndexIgnoredFailures int32
}

// Containers says what has become of the pod's containers.
type Containers struct {
	// MaxRestarts is the highest restart count of a container, MaxSidecarRestarts that
	// of a restartable init container.
	MaxRestarts, MaxSidecarRestarts int32
	// Restarts is the sum of all restart counts; 0 unless the pod is pending or running.
	Restarts int64
	// ContainersEnded is when the last container ended; restartable init containers end
	// after the others and count, too. It is zero while a container runs, or if one has
	// no end time.
	ContainersEnded time.Time
	// Exits are the containers that ended with a code other than 0, init containers
	// last. Behind them, of a pod that has not ended, is the container that was restarted last after such
	// an end, if there is one (Exit.Restarted).
	Exits []Exit
}

// interned has values that many pods have in common. Each value is in memory once.
type interned struct {
	namespace  unique.Handle[string]
	phase      unique.Handle[phase]
	controller unique.Handle[Owner]
	conditions []unique.Handle[Condition]
}

// phase is the pod's phase, why it does not get further, and the reason in its status. They are
// interned together, so that a Pod needs one handle for all.
type phase struct {
	phase  corev1.PodPhase
	waits  string
	reason string
	start  Start
	limits limits
	// node is where a pod runs that is being deleted. Of other pods nobody asks for it, and it would make their values differ.
	node string
}

// Owner is the object that controls a pod.
type Owner struct {
	APIVersion, Kind, Name string
	UID                    types.UID
	// SetBy is the field manager that gave the pod its owner: the client that created the
	// pod, or that adopted it. Empty if the API server has not recorded it.
	SetBy string
}

// Exit is a container that ended with a code other than 0.
type Exit struct {
	Container string
	Code      int32
	// Signal is the signal that ended it; 0 if the runtime does not say.
	Signal int32
	// Reason is the runtime's word for it, such as OOMKilled.
	Reason string
	// Message is the last line of its termination message (jobend.LastLine). Empty if the pod has no
	// annotation KeepTerminationMessageAnnotation.
	Message string

	// restarted is Restarted in seconds; 0: it was not.
	restarted int64
}

// Restarted is when it ended if it was restarted since, and zero if it was not.
func (e *Exit) Restarted() time.Time {
	if e.restarted == 0 {
		return time.Time{}
	}
	return time.Unix(e.restarted, 0)
}

// Condition is a condition of a pod, without texts and times.
type Condition struct {
	Type   corev1.PodConditionType
	Status corev1.ConditionStatus
}

// From returns the facts about a pod.
func From(pod *corev1.Pod) *Pod {
	p := &Pod{
		Name:                 pod.Name,
		UID:                  pod.UID,
		ResourceVersion:      pod.ResourceVersion,
		Labels:               labelsOf(pod.Labels),
		Created:              pod.CreationTimestamp.Time,
		HasTrackingFinalizer: slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer),
		Scheduled:            pod.Spec.NodeName != "",
		HasRun:               hasRun(pod),
		ResourceStep:         uint8(min(failureCount(pod, ResourceStepAnnotation), podfacts.MaxResourceStep)),
		Deletion:             deletion(pod),
		Indexing: Indexing{
			Index:                Index(pod),
			IndexFailures:        failureCount(pod, batchv1.JobIndexFailureCountAnnotation),
			IndexIgnoredFailures: failureCount(pod, batchv1.JobIndexIgnoredFailureCountAnnotation),
		},
		Containers: Containers{Restarts: restarts(pod), ContainersEnded: containersEnded(pod)},
		interned: interned{
			namespace:  unique.Make(pod.Namespace),
			phase:      unique.Make(phase{pod.Status.Phase, waits(pod), pod.Status.Reason, startOf(pod), limitsOf(pod), nodeOf(pod)}),
			controller: unique.Make(controller(pod)),
		},
	}
	p.readStart(pod)
	p.readConditions(pod.Status.Conditions)
	p.readContainers(pod)
	return p
}

// Namespace is the pod's namespace.
func (p *Pod) Namespace() string { return p.namespace.Value() }

// Phase is the pod's phase. It may be empty before a kubelet has written a status.
func (p *Pod) Phase() corev1.PodPhase { return p.phase.Value().phase }

// WaitingReason is the reason that keeps the pod from starting, as scheduler and kubelet name it:
// Unschedulable or ImagePullBackOff, for example. Empty: it has ended, or nothing is known
// to keep it.
func (p *Pod) WaitingReason() string { return p.phase.Value().waits }

// Start says whether the pod has started, and what keeps it from that.
func (p *Pod) Start() Start { return p.phase.Value().start }

// Reason is the reason in the pod's status, such as Evicted; empty if it has none.
func (p *Pod) Reason() string { return p.phase.Value().reason }

// Controller is the object that controls the pod; ok is false if none does.
func (p *Pod) Controller() (owner Owner, ok bool) {
	owner = p.controller.Value()
	return owner, owner != Owner{}
}

// jobKind is the kind of Jobs in every version of its group: versions come and go, and clients
// write references with those that they know.
var jobKind = batchv1.SchemeGroupVersion.WithKind("Job").GroupKind()

// ControllingJob is the Job that controls the pod; nil if none does. other is true if
// something that is no Job of the group batch controls it.
func (p *Pod) ControllingJob() (job *Owner, other bool) {
	owner, controlled := p.Controller()
	if !controlled {
		return nil, false
	}
	if schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != jobKind {
		return nil, true
	}
	return &owner, false
}

// Controlled reports whether an object controls the pod.
func (p *Pod) Controlled() bool {
	_, ok := p.Controller()
	return ok
}

// Ended reports whether the pod has succeeded or failed.
func (p *Pod) Ended() bool { return p.Phase() == corev1.PodSucceeded || p.Phase() == corev1.PodFailed }

// EachCondition calls f with every condition, in the pod's order.
func (p *Pod) EachCondition(f func(Condition)) {
	for _, c := range p.conditions {
		f(c.Value())
	}
}

// GetObjectMeta implements metav1.ObjectMetaAccessor, which informers use to tell objects
// and their versions apart.
func (p *Pod) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace(), UID: p.UID, ResourceVersion: p.ResourceVersion}
}

func (p *Pod) readConditions(conditions []corev1.PodCondition) {
	if len(conditions) > 0 {
		p.conditions = make([]unique.Handle[Condition], 0, len(conditions))
	}
	known := false
	for i := range conditions {
		c := &conditions[i]
		p.conditions = append(p.conditions, unique.Make(Condition{c.Type, c.Status}))
		if c.Type == corev1.PodReady && !known {
			known = true
			p.Ready, p.Unready = c.Status == corev1.ConditionTrue, c.Status == corev1.ConditionFalse
			p.ReadyChanged = c.LastTransitionTime.Time
		}
	}
}

func (p *Pod) readContainers(pod *corev1.Pod) {
	says := keepsMessages(pod)
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		p.MaxRestarts = max(p.MaxRestarts, s.RestartCount)
		p.readExit(s, says)
	}
	for i := range pod.Status.InitContainerStatuses {
		s := &pod.Status.InitContainerStatuses[i]
		if restartable(pod, s.Name) {
			p.MaxSidecarRestarts = max(p.MaxSidecarRestarts, s.RestartCount)
		}
		p.readExit(s, says)
	}
	if last := lastRestarted(pod, says); last != nil && !p.Ended() {
		p.Exits = append(p.Exits, *last)
	}
}

// hasRun reports whether a container of the pod has run, init containers aside. A kubelet says Running
// as soon as one runs, and never says Pending again. Of a pod that failed, it reports containers
// that never ran without the time at which they ended.
func hasRun(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodRunning, corev1.PodSucceeded:
		return true
	}
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.RestartCount > 0 || s.State.Terminated != nil && !s.State.Terminated.FinishedAt.IsZero()
	})
}

// keepsMessages reports whether what the pod's containers say at their end is kept.
func keepsMessages(pod *corev1.Pod) bool {
	return pod.Annotations[KeepTerminationMessageAnnotation] == "true"
}

func (p *Pod) readExit(s *corev1.ContainerStatus, says bool) {
	if ended := s.State.Terminated; ended != nil && ended.ExitCode != 0 {
		p.Exits = append(p.Exits, exitOf(s.Name, ended, says))
	}
}

func exitOf(container string, ended *corev1.ContainerStateTerminated, says bool) Exit {
	exit := Exit{Container: container, Code: ended.ExitCode, Signal: ended.Signal, Reason: unique.Make(ended.Reason).Value()}
	if says {
		exit.Message = jobend.LastLine(ended.Message)
	}
	return exit
}

// lastRestarted is how that container ended that was restarted last; nil if none was, or if it ended
// with code 0.
func lastRestarted(pod *corev1.Pod, says bool) (last *Exit) {
	var at metav1.Time
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			ended := statuses[i].LastTerminationState.Terminated
			if ended == nil || ended.ExitCode == 0 || ended.FinishedAt.IsZero() || last != nil && !ended.FinishedAt.After(at.Time) {
				continue
			}
			exit := exitOf(statuses[i].Name, ended, says)
			exit.restarted = max(1, ended.FinishedAt.Unix()) // 0 says that it was not restarted.
			last, at = &exit, ended.FinishedAt
		}
	}
	return last
}

func controller(pod *corev1.Pod) Owner {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return Owner{}
	}
	return Owner{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID, SetBy: ownerSetBy(pod)}
}

// firstOwner is in the managed fields of the field manager that added a pod's first owner
// reference. A client that changes an owner reference later, as the garbage collector does,
// owns only that reference, and not the list (".").
var firstOwner = []byte(`"f:ownerReferences":{".":{}`)

// ownerSetBy returns the field manager that added the pod's first owner reference.
func ownerSetBy(pod *corev1.Pod) string {
	for i := range pod.ManagedFields {
		e := &pod.ManagedFields[i]
		if e.Subresource == "" && bytes.Contains(e.FieldsV1.GetRawBytes(), firstOwner) {
			return e.Manager
		}
	}
	return ""
}

// Index is the pod's completion index. NoIndex: there is none, or it is not valid. It is the one in
// the host name, which consists of the Job's name and the index, and which nobody can change:
// whoever edits the annotation does not make the pod count for another index. The host name of a pod
// that no Job controller has made for this Job says nothing; then the annotation counts.
func Index(pod *corev1.Pod) int32 {
	if job := metav1.GetControllerOfNoCopy(pod); job != nil {
		if text, ok := strings.CutPrefix(pod.Spec.Hostname, job.Name+"-"); ok {
			if ix := parseIndex(text); ix != NoIndex && strconv.Itoa(int(ix)) == text {
				return ix
			}
		}
	}
	return parseIndex(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
}

func parseIndex(text string) int32 {
	ix, err := strconv.ParseInt(text, 10, 32)
	if err != nil || ix < 0 || ix > maxIndex {
		return NoIndex
	}
	return int32(ix)
}

// failureCount reads an annotation that is a count; 0 if it is absent or not a count.
func failureCount(pod *corev1.Pod, annotation string) int32 {
	n, err := strconv.ParseInt(pod.Annotations[annotation], 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int32(n)
}

// restarts adds up the restarts of a pod that is pending or running. It ignores counts
// below 0, which the API server accepts.
func restarts(pod *corev1.Pod) int64 {
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != corev1.PodRunning {
		return 0
	}
	var n int64
	for i := range pod.Status.InitContainerStatuses {
		n += max(0, int64(pod.Status.InitContainerStatuses[i].RestartCount))
	}
	for i := range pod.Status.ContainerStatuses {
		n += max(0, int64(pod.Status.ContainerStatuses[i].RestartCount))
	}
	return n
}

// deletion computes when the pod's deletion was asked for. deletionTimestamp is later: it is when
// the grace period ends.
func deletion(pod *corev1.Pod) Deletion {
	if pod.DeletionTimestamp == nil {
		return Deletion{}
	}
	grace := min(ptr.Deref(pod.DeletionGracePeriodSeconds, 0), math.MaxInt32)
	return Deletion{true, int32(max(grace, 0)), pod.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)}
}

func containersEnded(pod *corev1.Pod) (latest time.Time) {
	ended := func(s *corev1.ContainerStatus) bool {
		if s.State.Terminated == nil || s.State.Terminated.FinishedAt.IsZero() {
			return false
		}
		if at := s.State.Terminated.FinishedAt.Time; at.After(latest) {
			latest = at
		}
		return true
	}
	for i := range pod.Status.ContainerStatuses {
		if !ended(&pod.Status.ContainerStatuses[i]) {
			return time.Time{}
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		s := &pod.Status.InitContainerStatuses[i]
		if restartable(pod, s.Name) && !ended(s) {
			return time.Time{}
		}
	}
	return latest
}

// waits returns the reason of the condition PodScheduled if that is false, or else the
// reason of the first container that cannot be started.
func waits(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return ""
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return cmp.Or(c.Reason, corev1.PodReasonUnschedulable)
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if waiting := statuses[i].State.Waiting; waiting != nil && !slices.Contains(usualWaits, waiting.Reason) {
				return waiting.Reason
			}
		}
	}
	return ""
}

// usualWaits are the reasons of waiting containers that do not mean that the start has
// failed.
var usualWaits = []string{"", "ContainerCreating", "PodInitializing", "CrashLoopBackOff"}

func restartable(pod *corev1.Pod, initContainer string) bool {
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name == initContainer {
			return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		}
	}
	return false
}
