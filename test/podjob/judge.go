package podjob

import (
	"fmt"
	"net/http"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// mostAtOnce is how many Steps in a row may follow at once, while nobody else acts.
	mostAtOnce = 10
	// createBackoff is how long podjob creates no pod of a group after a creation failed.
	createBackoff = 10 * time.Second
	// mostRequests is how many requests a whole world may have.
	mostRequests = 50_000
	// restTime is the end of a world, in which nothing is left to do.
	restTime = 15 * time.Minute
	// mostAtRest is how many requests the controller may send in restTime.
	mostAtRest = 4
)

// A judge sees every write and every request of the controller.
type judge struct {
	*world
	broken   []string
	pods     map[types.UID]*record
	isLate   bool // What happens now was asked for by an earlier Step.
	losses   int  // How often a pod went away or a group was edited: names may be free again.
	removing bool // The controller removes the pods of an owner that is gone.

	atOnce  int // Steps in a row that followed at once, while nobody else acted.
	minute  time.Duration
	in      int // Requests in that minute.
	resting int // Requests in restTime.
}

// A record is what is known of a pod that the controller has created.
type record struct {
	*corev1.Pod // As it was last stored.
	group       *group
	index       string
	arrived     time.Time // Zero unless its creation took effect late.
	gone, left  bool      // left: another object took it over.
	leftAt      time.Time
	as          string // "succeeded" or "failed", once a list of the status has it.
	counted     bool
	// released says why the controller took the finalizer; empty: it did not. loss says who else
	// took the finalizer or the pod before it was recorded.
	released, loss string
}

func newJudge(w *world) *judge { return &judge{world: w, pods: map[types.UID]*record{}} }

// breach records a broken rule. Only the first few of a world are of use.
func (j *judge) breach(rule, format string, args ...any) {
	text := fmt.Sprintf("world %d, %v, %s: ", j.plan.seed, time.Since(j.began).Round(time.Millisecond), rule) + fmt.Sprintf(format, args...)
	j.notef("BROKEN %s", text)
	if len(j.broken) < 5 {
		j.broken = append(j.broken, text)
	}
}

// hopeless reports whether the world need not be played to its end.
func (j *judge) hopeless() bool { return j.tally.requests > mostRequests || len(j.broken) >= 5 }

// views are the views of the running Step.
func (j *judge) views() map[*group]*view {
	views := map[*group]*view{}
	for _, g := range j.owner.groups {
		views[g] = g.view
	}
	return views
}

// late does what a Step with these views has asked for.
func (j *judge) late(views map[*group]*view, do func()) {
	now := j.views()
	set := func(views map[*group]*view) {
		for g, v := range views {
			g.view = v
		}
	}
	set(views)
	j.isLate = true
	do()
	j.isLate = false
	set(now)
}

// sends counts a request of the controller.
func (j *judge) sends(r *http.Request) {
	j.tally.requests++
	now := time.Since(j.began)
	if now.Truncate(time.Minute) != j.minute {
		j.minute, j.in = now.Truncate(time.Minute), 0
	}
	j.in++
	// After an error each pod is tried again, once a second.
	if most := 60 * (5 + 3*len(j.pods)); j.in == most {
		j.breach("I11", "the controller sent %d requests in a minute, and it has created %d pods so far; the last one was %s %s", j.in, len(j.pods), r.Method, r.URL.Path)
	}
	if time.Until(j.ends) < restTime {
		if j.resting++; j.resting == mostAtRest+1 {
			j.breach("I11", "nothing has happened for long, and the controller sent more than %d requests in %v; the last one was %s %s", mostAtRest, restTime, r.Method, r.URL.Path)
		}
	}
	if j.tally.requests == mostRequests {
		j.breach("I11", "there is no end to what the controller sends")
	}
}

// othersActed begins to count Steps anew.
func (j *judge) othersActed() { j.atOnce = 0 }

// reconciled judges when the controller wants to be called again.
func (j *judge) reconciled(next time.Time, err error) {
	if err != nil || next.IsZero() || next.After(time.Now()) {
		j.atOnce = 0
		return
	}
	if j.atOnce++; j.atOnce == mostAtOnce {
		j.breach("I11", "Step asked %d times in a row to be called again at once, and nobody else did anything meanwhile", mostAtOnce)
	}
}

// pod judges a write of a pod. pod is nil if it is gone.
func (j *judge) pod(by string, old, pod *corev1.Pod) {
	ours := by == controllerName
	if !ours {
		j.othersActed()
	}
	switch {
	case old == nil && ours:
		j.created(pod)
	case old == nil:
	case j.pods[old.UID] != nil:
		r := j.pods[old.UID]
		if ours {
			j.touched(r, old, pod)
		} else {
			j.changedByOthers(r, pod)
		}
		if r.gone = pod == nil; r.gone {
			j.losses++
		}
		if pod != nil {
			r.Pod = pod
		}
	case ours:
		j.breach("I9", "the controller wrote pod %s, which somebody else has created", old.Name)
	}
}

// changedByOthers notes what others do to a pod of a group.
func (j *judge) changedByOthers(r *record, pod *corev1.Pod) {
	if tracked(r.Pod) && (pod == nil || !tracked(pod)) && r.loss == "" {
		r.loss = "somebody else took its finalizer"
	}
	if !r.left && pod != nil && !j.owner.controls(pod) {
		r.left, r.leftAt = true, time.Now()
		j.losses++
		if r.loss == "" {
			r.loss = "another object took it over"
		}
	}
}

// creates judges when a creation is sent, and notes whether it fails. client-go itself repeats those
// that are throttled.
func (j *judge) creates(body []byte, fault string) {
	pod := decodePod(body)
	if pod == nil {
		return
	}
	g := j.owner.group(pod.Annotations[groupAnnotation])
	if wait := time.Since(g.failed); !g.failed.IsZero() && wait < createBackoff {
		j.breach("I11", "pod %s is created %v after a creation failed, want %v at least", pod.Name, wait, createBackoff)
	}
	if fault != "" && fault != throttled {
		g.failed = time.Now()
	}
}

// created judges the creation of a pod.
func (j *judge) created(pod *corev1.Pod) {
	g := j.owner.group(pod.Annotations[groupAnnotation])
	if g == nil || !j.owner.controls(pod) || !tracked(pod) {
		j.breach("podjob", "pod %s was created without its group, its owner or its finalizer", pod.Name)
		return
	}
	r := &record{Pod: pod, group: g, index: pod.Annotations[batchv1.JobCompletionIndexAnnotation]}
	j.pods[pod.UID] = r
	if j.isLate {
		r.arrived = time.Now()
		if j.losses == g.view.losses { // Its name was the first free one, so no other pod was made in its place.
			j.judgeNumber(r)
		}
		return
	}
	switch v := g.view; {
	case isSuspended(v.job):
		j.breach("I6", "pod %s was created while its group is suspended", pod.Name)
	case finished(&v.job.Status) != "":
		j.breach("I6", "pod %s was created after its group had finished", pod.Name)
	}
	j.judgeNumber(r)
}

// judgeNumber checks I6: no more pods run than the group wants. Pods that arrived late, after the
// view, are not known.
func (j *judge) judgeNumber(r *record) {
	n, same, most := 0, 0, int(*r.group.view.job.Spec.Parallelism)
	for _, other := range j.pods {
		if other.group != r.group || other.gone || other.left || !active(other.Pod) || other != r && other.arrived.After(r.group.view.at) {
			continue
		}
		n++
		if other.index == r.index {
			same++
		}
	}
	switch {
	case n > most:
		j.breach("I6", "with pod %s, %d pods of group %s are active, and its parallelism is %d", r.Name, n, r.group.name, most)
	case r.index != "" && same > 1:
		j.breach("I6", "pod %s is the second one of its index", r.Name)
	}
}

func isSuspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

// inView is the pod as the Step has read it; nil: it has not.
func (r *record) inView() *corev1.Pod {
	if r.group.view == nil {
		return nil
	}
	for i := range r.group.view.pods {
		if p := &r.group.view.pods[i]; p.UID == r.UID {
			return p
		}
	}
	return nil
}

// touched judges a write of the controller to a pod that it has created.
func (j *judge) touched(r *record, old, pod *corev1.Pod) {
	releases := tracked(old) && (pod == nil || !tracked(pod))
	seen := r.inView()
	if seen == nil && !j.removing {
		j.breach("I9", "the controller wrote pod %s, which is not one of the group's in the view of this Step", r.Name)
	}
	if r.left && !(releases && r.as != "") && !tracked(old) {
		j.breach("I9", "the controller wrote pod %s, which another object took over at %v", r.Name, r.leftAt.Sub(j.began))
	}
	if releases {
		j.judgeRelease(r, seen, old)
	}
}
