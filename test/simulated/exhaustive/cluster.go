package exhaustive

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/podcache"
)

const (
	// maxPods is how many pods a world has at most. A world in which one more would be created ends there.
	maxPods = 3
	// maxExecutors is how many executors write at the same time.
	maxExecutors = 2

	jobUID = types.UID("00000000-0000-4000-8000-00000000000a")
)

// then is when everything happens, so that no delay hinders a step: decisions are made an hour later.
var then = metav1.NewTime(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))

// A jobVersion is a version of the Job, which never changes.
type jobVersion struct {
	jobKey
	job *batchv1.Job // nil: the Job is gone.
}

// A jobKey tells a jobVersion from all others.
type jobKey struct {
	at int // Its place in cluster.jobs.
	rv uint64
	// text is its content as far as it matters, but for the UIDs; place says where those of pods stand: 0 nowhere,
	// from 1 on among those that succeeded, from -1 down among those that failed.
	text  string
	place [maxPods]int8
}

// A podVersion is a version of a pod, which never changes.
type podVersion struct {
	podKey
	pod  *corev1.Pod // As it was last if it is gone.
	seen *podcache.Pod
	text string
}

// A podKey tells a podVersion from all others.
type podKey struct {
	n  int // The pod's number.
	at int // Its place in cluster.events.
	rv uint64
	podState
}

// A podState is what may be different in versions of a pod.
type podState struct {
	index                int32
	phase                corev1.PodPhase
	deleting, held, gone bool
}

func (v *podVersion) exists() bool { return v != nil && !v.gone }
func (s podState) ended() bool     { return s.phase == corev1.PodSucceeded || s.phase == corev1.PodFailed }
func (v *podVersion) active() bool { return v.exists() && !v.ended() && !v.deleting }

// A cluster is what the API server has stored, with all that the watches of it may still show. Worlds share what its
// slices refer to, so nothing there is ever changed.
type cluster struct {
	*memory
	rv     uint64
	jobs   []*jobVersion        // Every version; the last one is stored.
	events []*podVersion        // Every version of every pod, as a watch shows them.
	pods   [maxPods]*podVersion // The last version of each; nil: not created yet.
	// Was counted; was released and is not to be counted.
	counted, dropped [maxPods]bool
}

func (c *cluster) job() *batchv1.Job { return c.jobs[len(c.jobs)-1].job }

// storeJob stores what change makes of the Job. nil: the Job is gone.
func (c *cluster) storeJob(change func(*batchv1.Job)) *jobVersion {
	c.rv++
	v := &jobVersion{jobKey: jobKey{at: len(c.jobs), rv: c.rv}}
	if change != nil {
		v.job = c.job().DeepCopy()
		change(v.job)
		v.job.ResourceVersion = strconv.FormatUint(c.rv, 10)
		v.describe()
	}
	if known := c.knownJobs[v.jobKey]; known != nil {
		v = known
	}
	c.knownJobs[v.jobKey] = v
	c.jobs = append(c.jobs[:len(c.jobs):len(c.jobs)], v)
	return v
}

func (v *jobVersion) describe() {
	text, place := describe(&v.job.Status)
	v.text = text + fmt.Sprint(v.job.DeletionTimestamp != nil, isSuspended(v.job), v.job.Generation)
	v.place = place
}

// describe is a status as a jobKey has it.
func describe(s *batchv1.JobStatus) (text string, place [maxPods]int8) {
	if u := s.UncountedTerminatedPods; u != nil {
		for i, uid := range u.Succeeded {
			place[podNumber(uid)] = int8(i + 1)
		}
		for i, uid := range u.Failed {
			place[podNumber(uid)] = -int8(i + 1)
		}
	}
	return describeStatus(s) + fmt.Sprint(s.StartTime != nil), place
}

var podUIDs = [maxPods]types.UID{
	"00000000-0000-4000-8000-000000000100", "00000000-0000-4000-8000-000000000101", "00000000-0000-4000-8000-000000000102",
}

func podUID(n int) types.UID { return podUIDs[n] }

func podNumber(uid types.UID) int { return int(uid[len(uid)-1] - '0') }

// changePod stores what change makes of a pod. A pod that is deleted, has ended and has no finalizer is gone with it.
func (c *cluster) changePod(n int, change func(*podState)) *podVersion {
	state := c.pods[n].podState
	change(&state)
	return c.storePod(n, c.pods[n].pod, state)
}

func (c *cluster) storePod(n int, from *corev1.Pod, s podState) *podVersion {
	v := c.podEvent(n, from, s)
	if s.deleting && !s.held && s.ended() {
		s.gone = true
		v = c.podEvent(n, from, s)
	}
	return v
}

func (c *cluster) podEvent(n int, from *corev1.Pod, s podState) *podVersion {
	c.rv++
	key := podKey{n, len(c.events), c.rv, s}
	v := c.knownPods[key]
	if v == nil {
		v = newVersion(key, from)
		c.knownPods[key] = v
	}
	c.events = append(c.events[:len(c.events):len(c.events)], v)
	c.pods[n] = v
	return v
}

// newVersion makes a version of a pod out of another one.
func newVersion(key podKey, from *corev1.Pod) *podVersion {
	pod := from.DeepCopy()
	pod.Name, pod.UID, pod.CreationTimestamp = "j-"+strconv.Itoa(key.n), podUID(key.n), then
	pod.ResourceVersion, pod.Status = strconv.FormatUint(key.rv, 10), corev1.PodStatus{Phase: key.phase}
	code := int32(0)
	switch key.phase {
	case corev1.PodRunning:
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: then}}
	case corev1.PodFailed:
		code = 1
		fallthrough
	case corev1.PodSucceeded:
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: then}},
		}}
	}
	if key.deleting {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &then, ptr.To[int64](30)
	}
	if !key.held {
		pod.Finalizers = nil
	}
	return &podVersion{podKey: key, pod: pod, seen: podcache.From(pod), text: fmt.Sprint(key.podState)}
}

// free is the number of the next pod; maxPods: there can be no more.
func (c *cluster) free() int {
	n := slices.Index(c.pods[:], nil)
	if n < 0 {
		return maxPods
	}
	return n
}

func (c *cluster) createPod(pod *corev1.Pod, index int32) *podVersion {
	return c.storePod(c.free(), pod, podState{index: index, phase: corev1.PodPending, held: true})
}

func deletePod(s *podState)  { s.deleting = true }
func startPod(s *podState)   { s.phase = corev1.PodRunning }
func releasePod(s *podState) { s.held = false }

func endPod(phase corev1.PodPhase) func(*podState) {
	return func(s *podState) { s.phase = phase }
}
