package main

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The checks of a caller, in the order of the table.
const (
	checkRequests    = "its requests are valid"
	checkStatus      = "writes the status that was decided"
	checkCreate      = "creates no more than was decided"
	checkDelete      = "deletes only what was decided"
	checkRelease     = "releases only what was decided"
	checkFirst       = "writes the status only after it has created and deleted"
	checkOrder       = "releases only after the status is written"
	checkLost        = "asks again after a lost answer"
	checkOtherAnswer = "refuses the answer to another request"
	checkField       = "refuses an unknown field"
	checkDisposition = "refuses an unknown disposition"
	checkDeferral    = "refuses a step that it asked to leave for later"
	checkEnd         = "confirms releases, and brings every Job to its end"
)

var callerChecks = []string{
	checkRequests, checkStatus, checkCreate, checkDelete, checkRelease, checkFirst, checkOrder,
	checkLost, checkOtherAnswer, checkField, checkDisposition, checkDeferral, checkEnd,
}

// A watcher sees the requests of a caller and their answers, and compares each snapshot
// with what the earlier answers told the caller to do. Without a clusterWatcher it does not
// see the cluster, so it misses what a caller does and undoes between two requests.
type watcher struct {
	mu      sync.Mutex
	cluster *clusterWatcher // nil: the caller's API server is not watched.
	jobs    map[string]*watchedJob
	right   map[string]int
	wrong   map[string][]string
	answers int // Answers with a new status.
	asked   time.Time
}

func newWatcher() *watcher {
	return &watcher{jobs: map[string]*watchedJob{}, right: map[string]int{}, wrong: map[string][]string{}}
}

// A watchedJob holds what the caller may do until its next request about the Job.
type watchedJob struct {
	name      string
	status    []byte            // The status in the last request.
	decided   [][]byte          // Statuses that may be written.
	refused   map[string][]byte // Statuses that must not be written, by what is wrong with their answer.
	fewest    int64             // At least so many pods must be active or have ended in the next request.
	most      int64             // At most so many pods may be active, in flight or have ended in the next request.
	tracked   map[string]bool   // Pods that have ended or are being deleted, and are not released.
	released  map[string][]byte // Pods that may be released, with the status that must be written before.
	deletable map[string]bool   // Pods that an answer deletes.
	uncounted bool              // The last request has pods whose release is not confirmed.
	ended     bool

	active           int64
	created, deleted int64  // How many pods the last answer creates and deletes.
	next             []byte // The status in the last answer.
	early            bool   // The last answer creates pods although the request defers that.

	uid, namespace, short string // short is the name without the namespace.
	writes                *jobWrites
}

// request records a request, before it is answered.
func (w *watcher) request(req *jobpolicyv1.DecideJobRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = time.Now()
	uid := string(req.GetJob().GetUid())
	now := &watchedJob{
		name: req.GetJob().GetNamespace() + "/" + req.GetJob().GetName(), status: essence(req.GetStatus()), refused: map[string][]byte{},
		fewest: int64(req.GetPods().GetActive()), most: int64(req.GetPods().GetActive()) + int64(req.GetInFlight().GetCreates()), tracked: map[string]bool{}, released: map[string][]byte{}, deletable: map[string]bool{},
		uncounted: len(req.GetStatus().GetUncounted().GetSucceeded())+len(req.GetStatus().GetUncounted().GetFailed()) > 0,
		ended:     answer.Finished(req.GetStatus()) != nil,
		active:    int64(req.GetPods().GetActive()),
		uid:       uid, namespace: req.GetJob().GetNamespace(), short: req.GetJob().GetName(),
	}
	for _, row := range req.GetUnaccountedPods() {
		now.tracked[string(row.GetUid())] = true
	}
	before := w.jobs[uid]
	w.jobs[uid] = now
	if before != nil {
		now.writes = before.writes
	}
	if w.cluster != nil {
		w.cluster.asked(now, req)
	}
	if before == nil {
		return
	}
	w.compare(before, now, req)
	now.decided, now.released, now.deletable = before.decided, before.released, before.deletable
	for id := range now.released {
		switch {
		case !now.tracked[id]:
			delete(now.released, id)
		case !bytes.Equal(before.status, now.status):
			now.released[id] = nil
		}
	}
}

// compare compares a snapshot with what the caller was allowed to do since the last one.
func (w *watcher) compare(before, now *watchedJob, req *jobpolicyv1.DecideJobRequest) {
	written := !bytes.Equal(before.status, now.status)
	for fault, status := range before.refused {
		w.note(fault, !bytes.Equal(status, now.status), now, "the status of the answer that had to be refused was written")
	}
	isDecided := slices.ContainsFunc(before.decided, func(s []byte) bool { return bytes.Equal(s, now.status) })
	isRefused := false
	for _, status := range before.refused {
		isRefused = isRefused || bytes.Equal(status, now.status)
	}
	if written && !isRefused {
		w.note(checkStatus, isDecided, now, fmt.Sprintf("the status is %s, and no answer decided it", text(req.GetStatus())))
	}
	if req.GetUnlistedPods() != nil { // It is not known which pods were released.
		return
	}
	var left int64 // Pods that are not active any more.
	for _, row := range req.GetUnaccountedPods() {
		id := string(row.GetUid())
		if before.tracked[id] {
			continue
		}
		left++
		if row.GetDeleting() && (before.deletable[id] || !ended(row)) {
			w.note(checkDelete, before.deletable[id], now, fmt.Sprintf("the pod %x is being deleted, and no answer decided it", id))
		}
	}
	created := checkCreate
	if before.early {
		created = checkDeferral
	}
	w.note(created, now.most+left <= before.most, now, fmt.Sprintf("%d pods are active or have ended since, want %d at most", now.most+left, before.most))
	if written && bytes.Equal(now.status, before.next) {
		w.note(checkFirst, now.active+left >= before.fewest+before.created, now, fmt.Sprintf("the status is written, and %d pods are active or have ended since, want %d at least", now.active+left, before.fewest+before.created))
		w.note(checkFirst, now.active <= before.active+before.created-before.deleted, now, fmt.Sprintf("the status is written, and %d pods are active, want %d at most", now.active, before.active+before.created-before.deleted))
	}
	w.note(checkRelease, now.fewest+left >= before.fewest, now, fmt.Sprintf("%d pods are active or have ended since, and %d were active: one was released before it was listed", now.fewest+left, before.fewest))
	for id := range before.tracked {
		if now.tracked[id] {
			continue
		}
		first, decided := before.released[id]
		w.note(checkRelease, decided, now, fmt.Sprintf("the pod %x was released, and no answer decided it", id))
		if decided && first != nil {
			w.note(checkOrder, written || bytes.Equal(first, now.status), now, fmt.Sprintf("the pod %x was released, and the status before it was not written", id))
		}
	}
}

// ended reports whether a pod has ended. The snapshot does not show who has deleted such a
// pod, because the cluster deletes pods that have ended, too.
func ended(row *jobpolicyv1.UnaccountedPod) bool {
	return row.GetPhase() == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED || row.GetPhase() == jobpolicyv1.PodPhase_POD_PHASE_FAILED
}

// note records the result of a check.
func (w *watcher) note(check string, ok bool, job *watchedJob, problem string) {
	if ok {
		w.right[check]++
		return
	}
	w.wrong[check] = append(w.wrong[check], "Job "+job.name+": "+problem)
}

// done is the number of Jobs that have ended and are fully counted, and for how long the
// caller has asked nothing.
func (w *watcher) done() (n int, silent time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, job := range w.jobs {
		if job.ended && !job.uncounted {
			n++
		}
	}
	return n, time.Since(w.asked)
}

// optional are checks that may never apply: not every caller defers a step, and not every
// Job has pods to delete.
var optional = []string{checkDeferral, checkDelete, checkReleaseFirst}

// results returns one result for each check. A check that never applied has failed, unless
// it is optional.
func (w *watcher) results() []result {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, job := range w.jobs {
		for fault := range job.refused {
			w.note(fault, job.ended, job, "it did not ask again")
		}
		if w.cluster != nil {
			w.cluster.over(job)
		}
		w.note(checkEnd, job.ended && !job.uncounted, job, fmt.Sprintf("it has ended: %t; it has pods whose release is not confirmed: %t", job.ended, job.uncounted))
	}
	var results []result
	checks := callerChecks
	if w.cluster != nil {
		checks = slices.Concat(callerChecks, clusterChecks)
	}
	for _, check := range checks {
		if w.cluster != nil && w.cluster.opaque && slices.Contains(statusChecks, check) {
			continue
		}
		if slices.Contains(optional, check) && w.right[check]+len(w.wrong[check]) == 0 {
			continue
		}
		r := result{suite: "caller", name: check}
		switch wrong := w.wrong[check]; {
		case len(wrong) > 0:
			slices.Sort(wrong)
			r.problem = fmt.Sprintf("%d of %d times; the first: %s", len(wrong), len(wrong)+w.right[check], wrong[0])
		case w.right[check] == 0:
			r.problem = "never came up: let the caller run more Jobs, with pods that fail"
		}
		results = append(results, r)
	}
	return results
}

// essence is the part of a status that a caller must not change: all but its times, which a
// store may keep in whole seconds.
func essence(s *jobpolicyv1.JobStatus) []byte {
	c := proto.CloneOf(s)
	if c == nil {
		c = &jobpolicyv1.JobStatus{}
	}
	c.StartTime, c.CompletionTime = nil, nil
	for _, condition := range c.Conditions {
		condition.LastProbeTime, condition.LastTransitionTime = nil, nil
	}
	if u := c.GetUncounted(); u != nil {
		slices.SortFunc(u.Succeeded, bytes.Compare)
		slices.SortFunc(u.Failed, bytes.Compare)
		if len(u.Succeeded)+len(u.Failed) == 0 {
			c.Uncounted = nil
		}
	}
	if len(c.GetCompletedIndexes().GetRanges()) == 0 {
		c.CompletedIndexes = nil
	}
	out, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	if err != nil {
		return nil
	}
	return out
}
