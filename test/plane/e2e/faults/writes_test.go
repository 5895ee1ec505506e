package faults

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A write of each kind takes effect, and its answer never comes: the connection is
// lost, or the executor is killed while it waits.
func TestAWriteWithoutAnAnswerIsMadeOnce(t *testing.T) {
	t.Parallel()
	for _, write := range []Match{Creations, Statuses, Releases} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %s, killed %v", write.Verb, write.Resource, killed), func(t *testing.T) {
				t.Parallel()
				l, fault := newLab(t), Lose
				if killed {
					fault = ApplyThen(Hang)
				}
				lost := l.proxy.On(write, fault, Times(1))
				job := l.create("unanswered", spec(3, 3))
				l.eventually("the Job ends", func() (bool, string) {
					if killed && lost.Hits() > 0 && len(l.started) == 1 {
						l.restart()
					}
					if pods := l.pods(job); len(pods) >= 3 {
						l.succeed(pods...)
					}
					j := l.job("unanswered")
					return isFinished(j), describe(j)
				})
				l.ends("unanswered", batchv1.JobComplete, 3, 0)
				l.wantCreated[job.UID] = 3
			})
		}
	}
}

// kubernetes#125410: a pod that had been recorded as succeeded turned into a
// failed one; its UID then stood in both lists, which the API server refuses,
// for ever.
func TestFirstVerdictStaysWhenThePhaseFlips_125410(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spec              batchv1.JobSpec
		first, then       func(*lab, ...corev1.Pod)
		condition         batchv1.JobConditionType
		succeeded, failed int32
	}{
		"succeeded, then failed": {spec: spec(1, 1), first: (*lab).succeed, then: (*lab).fail, condition: batchv1.JobComplete, succeeded: 1},
		// The status has the index, not the UID: the index stays complete, and the
		// pod may count as failed as well, as upstream has it.
		"an index succeeded, then failed": {spec: indexed(1, 1), first: (*lab).succeed, then: (*lab).fail, condition: batchv1.JobComplete, succeeded: 1, failed: 1},
		"failed, then succeeded":          {spec: withLimit(spec(1, 1), 0), first: (*lab).fail, then: (*lab).succeed, condition: batchv1.JobFailed, failed: 1},
		"an index failed, then succeeded": {spec: withLimit(indexed(1, 1), 0), first: (*lab).fail, then: (*lab).succeed, condition: batchv1.JobFailed, failed: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			job := l.create("flips", tc.spec)
			pods := l.active(job, 1)
			releases := l.proxy.On(Releases, ServerError)
			tc.first(l, pods...)
			l.hits(releases, 1) // The status holds the verdict now.
			tc.then(l, pods...)
			releases.Off()
			if j := l.finished("flips"); !isTrue(j, tc.condition) || j.Status.Succeeded != tc.succeeded || j.Status.Failed > tc.failed {
				t.Errorf("want %s with %d succeeded and at most %d failed; it has %s", tc.condition, tc.succeeded, tc.failed, describe(j))
			}
			l.wantCreated[job.UID] = 1
		})
	}
}

// When a Job fails, its active pods are deleted and count as failed. One that succeeds before its
// deletion arrives counts once, whichever of both the executor has seen.
func TestAPodSucceedsWhileItsJobFails(t *testing.T) {
	t.Parallel()
	l, release := newLab(t), make(chan struct{})
	job := l.create("fails", withLimit(spec(2, 2), 0))
	pods := l.active(job, 2)
	l.bind(pods...)
	l.run(pods...)
	l.wait("fails", "both pods are ready", func(j *batchv1.Job) bool { return ready(j) == 2 })
	deletion := l.proxy.On(Match{Verb: "delete", Resource: "pods"}, Until(release))
	l.fail(pods[0])
	l.hits(deletion, 1)
	l.succeed(pods[1])
	close(release)
	j := l.finished("fails")
	l.countsAreTrue(j)
	if !isTrue(j, batchv1.JobFailed) || j.Status.Failed+j.Status.Succeeded != 2 {
		t.Errorf("two pods count, and the Job fails; it has %s", describe(j))
	}
	l.wantCreated[job.UID] = 2
}

// Failures that the pod failure policy ignores delay the next pod like others (I12).
func TestIgnoredFailuresAreRetriedNoFasterThanTheDelay(t *testing.T) {
	t.Parallel()
	const delay = 2 * time.Second
	l := newLab(t, "--pod-failure-backoff="+delay.String())
	s := withLimit(spec(1, 1), 0)
	s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:      batchv1.PodFailurePolicyActionIgnore,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{1}},
	}}}
	job := l.create("ignoring", s)
	pods := l.active(job, 1)
	for n := range 3 {
		failed := time.Now()
		l.fail(pods...)
		pods = l.active(job, 1)
		// The API keeps the time of the failure in whole seconds.
		if waited, least := time.Since(failed), delay<<n-time.Second; waited < least {
			t.Errorf("failure %d was retried after %s, want at least %s", n+1, waited, least)
		}
	}
	l.fail(pods...)
	l.delete("ignoring", metav1.DeletePropagationBackground)
}

// kubernetes#139281: the spec of a suspended Job could not be changed before its
// first status was written. Queue controllers change it right after they see it.
func TestSuspendedJobChangesRightAfterItsCreation_139281(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := spec(2, 2)
	s.Suspend = new(true)
	job := l.create("changed", s)
	l.patch("changed", `{"spec":{"parallelism":1,"template":{"metadata":{"labels":{"color":"blue"}},"spec":{"nodeSelector":{"pool":"batch"}}}}}`)
	l.wait("changed", "suspended", func(j *batchv1.Job) bool { return isTrue(j, batchv1.JobSuspended) })
	l.patch("changed", `{"spec":{"suspend":false}}`)
	for n := range 2 {
		pod := l.active(job, 1)[0]
		if pod.Labels["color"] != "blue" || pod.Spec.NodeSelector["pool"] != "batch" {
			t.Errorf("pod %d has labels %v and node selector %v", n, pod.Labels, pod.Spec.NodeSelector)
		}
		l.succeed(pod)
		l.wait("changed", "the pod is counted", func(j *batchv1.Job) bool { return int(j.Status.Succeeded) == n+1 })
	}
	l.ends("changed", batchv1.JobComplete, 2, 0)
	l.wantCreated[job.UID] = 2
}

// A pod that failed keeps its finalizer until the pod that replaces it carries
// its index's count of failures. In a namespace that is being deleted there will
// be none, and pods go before their Job does.
func TestNamespaceGoesWhileAnIndexWaitsForItsReplacement(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	job := l.create("waits", withPerIndex(indexed(2, 2), 3))
	failed := l.active(job, 2)[0]
	creations := l.proxy.On(Creations, ServerError)
	l.fail(failed)
	l.hits(creations, 1)
	for _, pod := range l.pods(job) {
		if !held(&pod) {
			t.Errorf("pod %s has lost its finalizer before it is replaced", pod.Name)
		}
	}
	creations.Off()
	// The test ends when the namespace is gone.
}

// kubernetes#89466: after a restart, a cache may show what was before the
// restart. So the first reads of an executor are never from a cache, whether it
// may stream them or has to list.
func TestFirstReadsAreNotFromACache_89466(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	noStreams := l.proxy.On(Match{Verb: "watch"}, Refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid),
		When(func(c Call) bool { return strings.Contains(c.Query, "sendInitialEvents=true") }))
	l.restart()
	for _, resource := range []string{"jobs", "pods"} {
		streams, lists := l.proxy.WatchQueries(resource), l.proxy.Calls(Match{Verb: "list", Resource: resource})
		if noStreams.Hits() < 2 || len(streams) == 0 || len(lists) == 0 {
			t.Fatalf("%s were not both streamed and listed: %v, %v", resource, streams, lists)
		}
		queries := streams
		for _, call := range lists {
			queries = append(queries, call.Query)
		}
		if strings.Contains(strings.Join(queries, "&")+"&", "resourceVersion=0&") {
			t.Errorf("%s were read from a cache: %q", resource, queries)
		}
	}
}
