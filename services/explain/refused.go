package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/executor/writes"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// A Refused is a kind of write that the API server refuses the controller.
type Refused struct {
	Write writes.Kind `json:"write"`
	// Since is when it was refused for the first time, as far as is known.
	Since time.Time `json:"since"`
	Why   string    `json:"why"`
}

// stillTold is how long after an event that is repeated at every try its refusal may still stand. A
// controller tries again after a minute at most, and sends such an event at least every five minutes.
const stillTold = 10 * time.Minute

// manyRefusals is how many events of one reason about an object a controller sends before it leaves some out.
const manyRefusals = 25

// releasedWithin is how soon after its end a pod is released, unless something is in the way.
const releasedWithin = 5 * time.Second

// told lists the refusals that the events on an object tell of: of each kind of write the last one.
func told(events []corev1.Event, onCronJob bool) (all []writes.Refusal) {
	for i := range events {
		e := &events[i]
		kind, why, ok := writes.OfEvent(onCronJob, e.Reason, e.Message)
		if !ok || e.Type == corev1.EventTypeNormal {
			continue
		}
		r := writes.Refusal{Kind: kind, Since: begun(e), Last: Seen(e), Why: why}
		switch at := slices.IndexFunc(all, func(known writes.Refusal) bool { return known.Kind == kind }); {
		case at < 0:
			all = append(all, r)
		case r.Last.After(all[at].Last):
			all[at] = r
		}
	}
	slices.SortFunc(all, func(a, b writes.Refusal) int { return strings.Compare(string(a.Kind), string(b.Kind)) })
	return all
}

// begun is when an event happened first.
func begun(e *corev1.Event) time.Time {
	if e.FirstTimestamp.IsZero() {
		return Seen(e)
	}
	return wire.Time(e.FirstTimestamp.Time)
}

// findRefusals finds the writes that the API server refuses. An event tells of a refusal when it
// begins, so the rest of the facts says whether it still stands: the write is yet to be made.
func (w *work) findRefusals() {
	if w.recorded {
		w.refusals = w.Facts.Refusals
	} else {
		for _, r := range told(w.Events, false) {
			if r.Objects = w.pending(r); r.Objects > 0 {
				w.refusals = append(w.refusals, r)
			}
		}
	}
	for _, r := range w.refusals {
		w.Refused = append(w.Refused, Refused{r.Kind, r.Since, r.Why})
	}
	w.Next.refuse(w.resp, w.refuses)
}

// pending is how many objects a refused write is yet to be made for.
func (w *work) pending(r writes.Refusal) int {
	due := false
	switch r.Kind {
	case writes.CreatePod, writes.CreateWorkload, writes.CreatePodGroup, writes.UseWorkload:
		due = w.resp.GetCreate() != nil && !w.createdAfter(r.Last)
	case writes.DeletePod:
		if w.Now.Sub(r.Last) < stillTold {
			return len(w.resp.GetDelete()) + len(w.resp.GetDeleteFinished())
		}
	case writes.EndPod:
		if w.Now.Sub(r.Last) < stillTold {
			return len(w.resp.GetEnd())
		}
	case writes.ReleasePod:
		return w.countPods(func(p *corev1.Pod) bool { return holdsFinalizer(p) && w.heldSince(p, r.Last) })
	case writes.UpdateStatus:
		due = w.resp.GetStatus() != nil && !statusWrittenAfter(w.Job, r.Last)
	case writes.DeleteJob:
		due = w.resp.GetDeleteJob() != nil
	default:
		// Nothing shows that a pod is to be adopted. Without it, no status is written.
		due = wire.FinishedCondition(w.Job) == nil && !statusWrittenAfter(w.Job, r.Last)
	}
	if due {
		return 1
	}
	return 0
}

func (w *work) countPods(f func(*corev1.Pod) bool) (n int) {
	for i := range w.Facts.Pods {
		if f(&w.Facts.Pods[i]) {
			n++
		}
	}
	return n
}

func holdsFinalizer(p *corev1.Pod) bool {
	return slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer)
}

// kept counts the pods that have ended and still have the finalizer.
func (w *work) kept() int {
	return w.countPods(func(p *corev1.Pod) bool { return ended(p) && holdsFinalizer(p) })
}

// tellKept says that pods have kept the finalizer for long after their end, if no event says why: the built-in controller
// writes none.
func (w *work) tellKept() {
	if w.recorded || len(w.refusals) > 0 {
		return
	}
	n := w.countPods(func(p *corev1.Pod) bool { return ended(p) && holdsFinalizer(p) && w.Now.Sub(failedAt(p)) > SlowStart })
	if n == 0 {
		return
	}
	w.Headline += fmt.Sprintf(" Pods that ended more than %s ago and still have the finalizer %s: %d.", simulate.Clock(SlowStart), batchv1.JobTrackingFinalizer, n)
	w.advise("See whether %s runs, and what it logs. A webhook or an admission policy that is asked about updates of pods may deny it the removal of the finalizer: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies", manager(w.Job))
}

// heldSince reports whether a pod should have been released by now, and a refusal at the time explains why
// it was not. Only one event tells of all pods, so it may be older than the end of the pod.
func (w *work) heldSince(p *corev1.Pod, refused time.Time) bool {
	if ended(p) {
		return !failedAt(p).After(refused) || w.Now.Sub(failedAt(p)) > releasedWithin
	}
	uids := slices.Clone(w.resp.GetRelease())
	for _, d := range w.resp.GetDelete() {
		uids = append(uids, d.GetUid())
	}
	return !p.CreationTimestamp.After(refused) && slices.ContainsFunc(uids, func(b []byte) bool {
		uid, err := wire.UIDString(b)
		return err == nil && uid == p.UID
	})
}

// statusWrittenAfter reports whether an object's status was written after a time.
func statusWrittenAfter(o metav1.Object, at time.Time) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Subresource == "status" && m.Time != nil && m.Time.After(at)
	})
}

// orRefused says that pods may be refused although some were created since the last event about it: when so many
// refusals were told of, each further one is not.
func (w *work) orRefused() string {
	times, last := int32(0), (*writes.Refusal)(nil)
	for i := range w.Events {
		if w.Events[i].Reason == "FailedCreate" {
			times += max(1, w.Events[i].Count)
		}
	}
	for _, r := range told(w.Events, false) {
		if r.Kind == writes.CreatePod && w.Now.Sub(r.Last) < stillTold {
			last = &r
		}
	}
	if w.recorded || last == nil || times < manyRefusals {
		return ""
	}
	return fmt.Sprintf(" The API server may refuse them: the last event about a refusal is from %s (%s). After %d such events, a controller leaves most of them out.",
		w.ago(last.Last), last.Why, manyRefusals)
}

func (w *work) refuses(kinds ...writes.Kind) bool { return w.refusal(kinds...) != nil }

// refusal is the last refusal of one of these kinds; nil if there is none.
func (w *work) refusal(kinds ...writes.Kind) (last *writes.Refusal) {
	for i := range w.refusals {
		if r := &w.refusals[i]; slices.Contains(kinds, r.Kind) && (last == nil || r.Last.After(last.Last)) {
			last = r
		}
	}
	return last
}

// refuse marks what comes next as refused, if the API server refuses the first part of it.
func (n *Next) refuse(resp *jobpolicyv1.DecideJobResponse, refuses func(...writes.Kind) bool) {
	if n == nil {
		return
	}
	// Without an adoption nothing is decided, and without a status no more pods are recorded and created.
	if n.Refused = refuses(writes.AdoptPod, writes.UpdateStatus); n.Refused || n.At != nil {
		return
	}
	n.Refused = slices.ContainsFunc(n.Steps, func(s Step) bool {
		switch {
		case s.Kind == "create":
			return refuses(writes.CreatePod, writes.CreateWorkload, writes.CreatePodGroup, writes.UseWorkload)
		case s.Kind == "delete":
			return refuses(writes.DeletePod, writes.ReleasePod)
		case s.Kind == "end":
			return refuses(writes.EndPod)
		case s.Kind == "remove":
			return refuses(writes.DeleteJob)
		}
		return resp.GetStatus() == nil && refuses(writes.ReleasePod) // Only finalizers are to be removed.
	})
}

// tellRefusals says what the API server refuses, except for pods that it does not create: that is a
// situation of its own.
func (w *work) tellRefusals() {
	for _, r := range w.refusals {
		switch r.Kind {
		case writes.CreatePod, writes.CreateWorkload, writes.CreatePodGroup, writes.UseWorkload:
			continue
		}
		text, wait, change := tell(r, w.Now)
		w.Headline += text
		w.Report.Waits = append(w.Report.Waits, Wait{For: wait})
		w.advise("%s", change)
	}
}

// tell writes a refusal: as a sentence, as something that is waited for, and what a person can do.
func tell(r writes.Refusal, now time.Time) (sentence, wait, change string) {
	what := r.Kind.Words()
	if r.Objects > 0 {
		what = strings.Replace(what, "pods", strings.TrimSuffix(strings.TrimSuffix(pods(r.Objects), " is"), " are"), 1)
	}
	return fmt.Sprintf(" The API server refuses to %s, since %s: %s.", what, when(now, r.Since), strings.TrimSuffix(r.Why, ".")),
		fmt.Sprintf("the API server, which refuses to %s: %s", what, r.Why), whatAllows(r.Why)
}

// whatAllows says what a person can do about a refusal of a write that only the controller makes.
func whatAllows(why string) string {
	const tries = "; the controller tries again by itself, at least once a minute."
	switch {
	case strings.Contains(why, "failed calling webhook"):
		return "Fix the webhook, or set its failurePolicy to Ignore" + tries
	case strings.Contains(why, "put back"):
		return "Let the admission webhook that puts the finalizer back leave it out" + tries
	case strings.Contains(why, "admission webhook"):
		return "Let the webhook that the message names allow it to the controller" + tries
	case strings.Contains(why, "ValidatingAdmissionPolicy"):
		return "Let the policy that the message names, or its binding, leave out what the controller does" + tries
	case strings.Contains(why, "cannot "):
		return "Give the controller's account the permission that the message names" + tries
	}
	return "Change what the message names" + tries
}

// findRefusals finds the writes for a CronJob that the API server refuses, as work.findRefusals does.
func (w *cronWork) findRefusals() {
	for _, r := range told(w.Events, true) {
		due := false
		switch r.Kind {
		case writes.CreateRun:
			at := w.resp.GetCreate().GetScheduledTime()
			due = w.resp.GetCreate() != nil && (at == nil || r.Last.After(at.AsTime()))
		case writes.DeleteRun:
			due = len(w.resp.GetDelete()) > 0 && w.Now.Sub(r.Last) < stillTold
		case writes.UpdateCronJob:
			due = w.resp.GetEdits() != nil
		case writes.UpdateCronJobStatus:
			due = w.statusDue && !statusWrittenAfter(w.CronJob, r.Last)
		}
		if due {
			w.refusals = append(w.refusals, r)
			w.Refused = append(w.Refused, Refused{r.Kind, r.Since, r.Why})
		}
	}
}

// tellRefusals says what the API server refuses, except for the Job of a scheduled run: that is a
// situation of its own.
func (w *cronWork) tellRefusals() {
	for _, r := range w.refusals {
		if r.Kind == writes.CreateRun && w.State == Blocked {
			continue
		}
		text, wait, change := tell(r, w.Now)
		w.Headline += text
		w.Waits = append(w.Waits, Wait{For: wait})
		w.advise("%s", change)
	}
}
