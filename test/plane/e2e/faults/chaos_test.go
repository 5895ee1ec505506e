package faults

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/test/kit/objects"
)

var (
	seedFlag  = flag.Uint64("faults.seed", 1, "seed of the chaos test")
	chaosFlag = flag.Duration("faults.chaos", 25*time.Second, "how long the chaos test lets things fail")
)

// tick is the time between two actions of the chaos.
const tick = 60 * time.Millisecond

// Jobs of every kind run to their end while one call in six fails in some way, watches
// lag and break, and the executor is killed again and again. In the end each status
// must agree with what really happened to the pods. The seed decides what happens, but
// not when.
func TestChaosLosesNothing(t *testing.T) {
	t.Parallel()
	t.Logf("again: go test ./plane/e2e/faults -run Chaos -args -faults.seed=%d", *seedFlag)
	c := newChaos(t, *seedFlag)
	failing := c.proxy.On(Match{}, OneOf(rand.New(rand.NewPCG(*seedFlag, 2)),
		ServerError, Overloaded, TimedOut, Conflict, Drop, Lose, ApplyThen(ServerError), ApplyThen(TimedOut), Late(200*time.Millisecond)),
		When(c.strikes(rand.New(rand.NewPCG(*seedFlag, 3)))))
	for over := false; !over && time.Since(c.began) < *chaosFlag; time.Sleep(tick) {
		c.disturb()
		c.node()
		c.users()
		over, _ = c.over()
	}
	failing.Off()
	c.calmDown()
	c.eventually("all Jobs end", func() (bool, string) {
		c.node()
		c.users()
		return c.over()
	})
	t.Logf("%d calls failed on purpose, the executor was killed %d times, %d pods were created in %s",
		failing.Hits(), len(c.started)-1, c.seen.AllPods(), time.Since(c.began).Round(time.Second))
	c.check()
}

// A chaos is a lab in which everything happens at random.
type chaos struct {
	*lab
	random   *rand.Rand
	subjects []*subject
	began    time.Time
	// ending are pods whose deletion the node has completed.
	ending map[types.UID]bool
	// releases hold the times at which held watches are released.
	releases []heldWatch
}

type heldWatch struct {
	until   time.Time
	release func()
}

func newChaos(t *testing.T, seed uint64) *chaos {
	t.Helper()
	c := &chaos{
		lab:    newLab(t, "--pod-failure-backoff=100ms", "--max-pod-failure-backoff=400ms"),
		random: rand.New(rand.NewPCG(seed, 1)), ending: map[types.UID]bool{}, began: time.Now(), subjects: subjects(),
	}
	for _, s := range c.subjects {
		s.job = c.create(s.name, s.spec)
	}
	return c
}

// chance is true n times in a hundred.
func (c *chaos) chance(n int) bool { return c.random.IntN(100) < n }

// strikes decides which calls fail.
func (c *chaos) strikes(random *rand.Rand) func(Call) bool {
	return func(call Call) bool {
		return !strings.HasPrefix(call.Resource, "events") && call.Verb != "watch" && random.IntN(6) == 0
	}
}

// disturb holds watches back, cuts them, and kills the executor.
func (c *chaos) disturb() {
	c.release(time.Now())
	resource := []string{"pods", "jobs"}[c.random.IntN(2)]
	switch n := c.random.IntN(100); {
	case n < 6:
		until := time.Now().Add(time.Duration(c.random.IntN(1500)) * time.Millisecond)
		c.releases = append(c.releases, heldWatch{until, c.proxy.HoldWatch(resource)})
	case n < 10:
		c.proxy.CutWatches(resource)
	case n < 14:
		c.executor.kill()
		c.executor = c.startExecutor(c.proxy)
	}
}

// release releases the watches that were held until now.
func (c *chaos) release(now time.Time) {
	c.releases = slices.DeleteFunc(c.releases, func(h heldWatch) bool {
		over := !h.until.After(now)
		if over {
			h.release()
		}
		return over
	})
}

// calmDown ends all faults. The last executor starts at once.
func (c *chaos) calmDown() {
	c.release(time.Now().Add(time.Hour))
	c.restart()
}

// node advances the pods.
func (c *chaos) node() {
	pods := objects.List(c, client.CoreV1().Pods(c.namespace), metav1.ListOptions{})
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, pod := range pods.Items {
		c.moveOn(pod)
	}
}

func (c *chaos) moveOn(pod corev1.Pod) {
	s := c.subjectOf(pod)
	switch {
	case pod.DeletionTimestamp != nil:
		if !c.ending[pod.UID] && c.chance(30) {
			c.ending[pod.UID] = true
			c.end(pod)
		}
	case ended(&pod) || s == nil:
	case pod.Status.Phase == corev1.PodPending:
		if c.chance(50) {
			c.bind(pod)
			c.run(pod)
		}
	case s.drained && c.chance(3):
		c.evict(pod)
	case c.chance(15):
		if status, ends := s.ending(c, &pod); ends {
			c.setStatus(pod, status)
		}
	}
}

func (c *chaos) subjectOf(pod corev1.Pod) *subject {
	owner := metav1.GetControllerOf(&pod)
	if owner == nil {
		return nil
	}
	i := slices.IndexFunc(c.subjects, func(s *subject) bool { return s.name == owner.Name })
	if i < 0 {
		return nil
	}
	return c.subjects[i]
}

// evict deletes a pod as users do, with time to end.
func (c *chaos) evict(pod corev1.Pod) {
	_ = client.CoreV1().Pods(c.namespace).Delete(c.Context(), pod.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &pod.UID},
	}) // it may be gone
}

// users make the changes that are due.
func (c *chaos) users() {
	for _, s := range c.subjects {
		if len(s.changes) == 0 || time.Since(c.began) < *chaosFlag*time.Duration(s.changes[0].at)/100 {
			continue
		}
		change := s.changes[0]
		s.changes = s.changes[1:]
		if change.patch != "" && !isFinished(c.job(s.name)) {
			c.patch(s.name, change.patch)
		}
		if change.do != nil {
			change.do(c, s)
		}
	}
}

// over reports whether every Job is finished, or gone for good.
func (c *chaos) over() (bool, string) {
	var open []string
	for _, s := range c.subjects {
		if len(s.changes) > 0 {
			open = append(open, s.name+": not all is changed that is to be")
			continue
		}
		if s.job == nil {
			continue
		}
		if s.job = c.job(s.name); !isFinished(s.job) {
			open = append(open, fmt.Sprintf("%s: %s", s.name, describe(s.job)))
		}
	}
	return len(open) == 0, strings.Join(open, "\n")
}

// check compares each Job with its pods.
func (c *chaos) check() {
	c.noneHeld()
	for _, s := range c.subjects {
		if s.job == nil {
			continue
		}
		c.countsAreTrue(s.job)
		if reason := verdict(s.job); s.want != "" && reason != s.want {
			c.Errorf("Job %s ended as %s, want %s: %s", s.name, reason, s.want, describe(s.job))
		}
		if indexes := ptr.Deref(s.job.Status.FailedIndexes, ""); indexes != s.failedIndexes {
			c.Errorf("Job %s has failed indexes %q, want %q", s.name, indexes, s.failedIndexes)
		}
		if !s.resized {
			c.problems(c.seen.TooMany(s.job))
		}
	}
}

// countsAreTrue compares the counters of a finished Job with its pods.
func (l *lab) countsAreTrue(job *batchv1.Job) {
	l.Helper()
	l.eventually("all pods are released", func() (bool, string) {
		pod := l.seen.Unreleased(job.UID)
		return pod == "", pod
	})
	l.problems(l.seen.Miscounts(job))
}

func (l *lab) problems(found []string) {
	l.Helper()
	for _, problem := range found {
		l.Error(problem)
	}
}

// verdict is the type and reason of the terminal condition.
func verdict(job *batchv1.Job) string {
	for _, condition := range job.Status.Conditions {
		if condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed {
			return string(condition.Type) + " " + condition.Reason
		}
	}
	return ""
}
