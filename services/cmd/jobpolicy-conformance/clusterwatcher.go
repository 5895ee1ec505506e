package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The checks of a caller whose writes to its API server pass through an apiProxy.
const (
	checkWrites       = "writes the status of a decision after its creations and deletions are answered"
	checkDurable      = "begins to release a pod when a status that accounts for it is written"
	checkReleaseFirst = "releases a pod before it deletes it, where the answer says so"
	checkBegins       = "begins no more creations than an answer decided"
	checkUnknown      = "finds out what became of a creation without an answer before it asks again"
	checkCount        = "counts a pod once, when it is released"
	checkLostWrites   = "goes on after the API server's answer to a write was lost"
)

var clusterChecks = []string{checkWrites, checkDurable, checkReleaseFirst, checkBegins, checkUnknown, checkCount, checkLostWrites}

// statusChecks are the checks that need to see the writes of statuses.
var statusChecks = []string{checkWrites, checkDurable, checkCount}

// A clusterWatcher sees when each write of a caller to the API server begins and ends, and
// compares it with the engine's answers to the caller. It shares the lock and the results
// of the watcher, which sees the requests to the engine.
type clusterWatcher struct {
	*watcher
	opaque  bool // The caller's statuses cannot be read.
	clock   int  // Counts the writes that begin and those that end.
	open    map[*clusterWrite]bool
	pods    map[types.UID]*clusterPod
	durable map[types.UID]map[string]int // Statuses that objects have or had, and since when (clock).
	kinds   map[string]int               // How many writes of each kind the watcher has seen.
}

// A clusterPod is a pod that was created or written by the caller.
type clusterPod struct {
	job      *jobWrites
	name     string
	released int  // When its finalizer was removed (clock); 0: not yet.
	unshown  bool // The caller has not been told that the pod exists.
}

// A jobWrites holds what a caller wrote for a Job, and what the engine answered.
type jobWrites struct {
	seen      bool // The Job has been watched since its first pod.
	indexed   bool
	first     string // The status in the first request.
	next      string // The status that the last answer decides; "": none.
	written   bool   // That status is written.
	creations int    // Creations that have begun since the last request.
	accounted map[string][]string
	toDelete  map[string]bool // Pods that the last answer deletes. True: to be released first.
	undecided []string        // Pods that the caller deleted although no answer did.
	lost      int
}

func newClusterWatcher() *clusterWatcher {
	c := &clusterWatcher{
		watcher: newWatcher(), open: map[*clusterWrite]bool{}, pods: map[types.UID]*clusterPod{},
		durable: map[types.UID]map[string]int{}, kinds: map[string]int{},
	}
	c.watcher.cluster = c
	return c
}

// asked records a request to the engine. The lock must be held.
func (c *clusterWatcher) asked(job *watchedJob, req *jobpolicyv1.DecideJobRequest) {
	if job.writes == nil {
		job.writes = &jobWrites{
			seen: job.active+int64(len(req.GetUnaccountedPods())) == 0, first: string(job.status), accounted: map[string][]string{},
			indexed: req.GetSpec().GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED,
		}
	}
	j := job.writes
	c.checkDeletions(job)
	j.next, j.written, j.creations, j.toDelete = "", false, 0, map[string]bool{}
	unshown := 0
	for _, pod := range c.pods {
		if pod.job == j && pod.unshown {
			unshown++
		}
	}
	if unshown > 0 {
		c.note(checkUnknown, int(req.GetInFlight().GetCreates()) >= unshown, job, fmt.Sprintf("%d pods were created without an answer, and it asks with %d creations in flight", unshown, req.GetInFlight().GetCreates()))
	}
}

// answered records a decision that may be carried out. The lock must be held.
func (c *clusterWatcher) answered(job *watchedJob, d *jobpolicyv1.DecideJobResponse) {
	j, status := job.writes, string(job.status)
	if d.GetStatus() != nil {
		if status = string(essence(d.GetStatus())); status != string(job.status) {
			j.next = status
		}
	}
	for _, uid := range d.GetRelease() {
		j.accounted[string(uid)] = append(j.accounted[string(uid)], status)
	}
	for _, pod := range d.GetDelete() {
		j.toDelete[string(pod.GetUid())] = pod.GetReleaseFirst()
		if pod.GetReleaseFirst() {
			j.accounted[string(pod.GetUid())] = append(j.accounted[string(pod.GetUid())], j.first)
		}
	}
}

// begun records that a write begins.
func (c *clusterWatcher) begun(w *clusterWrite) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock++
	w.at = c.clock
	for other := range c.open {
		if (other.pod != nil || other.deleted != nil) && !other.done {
			w.beside = append(w.beside, other)
		}
	}
	c.open[w] = true
	switch {
	case w.creates() && w.pod != nil:
		if job := c.jobOf(&w.pod.ObjectMeta); job != nil {
			job.writes.creations++
			c.note(checkBegins, int64(job.writes.creations) <= job.created, job, fmt.Sprintf("creation %d has begun since the last answer, which decided %d", job.writes.creations, job.created))
			c.note(checkWrites, !job.writes.written, job, "the status was written, and then a creation of the same decision began")
		}
	case w.deletes():
		for uid, pod := range c.pods {
			if pod.name == w.name {
				c.deletionBegun(w, uid, pod)
			}
		}
	}
}

// over makes the checks that are possible only after the caller's last request.
func (c *clusterWatcher) over(job *watchedJob) {
	if job.ended {
		c.checkDeletions(job)
	}
	if lost := job.writes.lost; lost > 0 {
		c.note(checkLostWrites, job.ended, job, fmt.Sprintf("%d answers were lost, and it has not ended", lost))
	}
}

// closed records that a write is over, with or without an answer.
func (c *clusterWatcher) closed(w *clusterWrite) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, w)
}

// ended records the API server's answer, and reports whether to lose it.
func (c *clusterWatcher) ended(w *clusterWrite, code int, body []byte) (lose bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock++
	w.done = true
	if code >= http.StatusMultipleChoices {
		return false
	}
	if w.deletes() && w.name == "" {
		c.allDeleted(body)
		return false
	}
	o := readObject(body)
	if o == nil {
		return false
	}
	if w.resource == "pods" {
		return c.podWritten(w, o)
	}
	return c.objectWritten(w, o)
}

// podWritten records that a pod was created, changed or deleted.
func (c *clusterWatcher) podWritten(w *clusterWrite, o *object) (lose bool) {
	job := c.jobOf(&o.ObjectMeta)
	if job == nil {
		return false
	}
	if w.deletes() {
		c.deletionEnded(job, o.UID, o.Name)
	}
	pod := c.pods[o.UID]
	if pod == nil {
		pod = &clusterPod{job: job.writes, name: o.Name}
		c.pods[o.UID] = pod
	}
	if w.creates() {
		pod.unshown = c.lose("create", job)
		return pod.unshown
	}
	if pod.released > 0 || slices.Contains(o.Finalizers, batchv1.JobTrackingFinalizer) {
		return c.lose(w.method, job)
	}
	pod.released = c.clock
	c.note(checkDurable, c.isAccounted(metav1.GetControllerOf(o).UID, job.writes, uidBytes(o.UID), w.at), job, fmt.Sprintf("the release of the pod %s began, and no status that accounts for it was written", o.Name))
	return c.lose("release", job)
}

// isAccounted reports whether a status was written before then with which an answer
// released the pod. It is true for a pod that no answer released: checkRelease reports
// that.
func (c *clusterWatcher) isAccounted(owner types.UID, j *jobWrites, pod string, by int) bool {
	statuses := j.accounted[pod]
	return len(statuses) == 0 || slices.ContainsFunc(statuses, func(status string) bool {
		since := c.durable[owner][status]
		return status == j.first || since > 0 && since < by
	})
}

// objectWritten records the statuses in an object that controls pods.
func (c *clusterWatcher) objectWritten(w *clusterWrite, o *object) (lose bool) {
	if c.durable[o.UID] == nil {
		c.durable[o.UID] = map[string]int{}
	}
	statuses := map[string]*jobpolicyv1.JobStatus{}
	collectStatuses(o.Status, statuses)
	var written *watchedJob
	for text, status := range statuses {
		if c.durable[o.UID][text] == 0 {
			c.durable[o.UID][text] = c.clock
		}
		for _, job := range c.jobs {
			decided := job.writes.next == text && !job.writes.written && job.belongsTo(o)
			if decided {
				written, job.writes.written = job, true
				c.notBefore(w, job)
			}
			if decided || job.uid == uidBytes(o.UID) {
				c.counted(w, job, status)
			}
		}
	}
	return written != nil && c.lose("status", written)
}

// notBefore checks that the write of a decided status began after the creations and
// deletions of the same decision were answered.
func (c *clusterWatcher) notBefore(w *clusterWrite, job *watchedJob) {
	open := 0
	for _, other := range w.beside {
		if other.deleted != nil && other.deleted.job == job.writes || other.pod != nil && c.jobOf(&other.pod.ObjectMeta) == job {
			open++
		}
	}
	c.note(checkWrites, open == 0, job, fmt.Sprintf("the write of the status began, and %d creations and deletions of the same decision had no answer yet", open))
}

// counted checks that a status counts no more pods than were released before it was
// written. It does not check the succeeded pods of an INDEXED Job: their indexes are
// recorded before the release.
func (c *clusterWatcher) counted(w *clusterWrite, job *watchedJob, status *jobpolicyv1.JobStatus) {
	if !job.writes.seen {
		return
	}
	counted, released := int(status.GetFailed()), 0
	if !job.writes.indexed {
		counted += int(status.GetSucceeded())
	}
	for _, pod := range c.pods {
		if pod.job == job.writes && pod.released > 0 && pod.released < w.at {
			released++
		}
	}
	c.note(checkCount, counted <= released, job, fmt.Sprintf("the status counts %d pods, and %d are released", counted, released))
}

// lose chooses the second of every ten answers to each kind of write.
func (c *clusterWatcher) lose(kind string, job *watchedJob) bool {
	c.kinds[kind]++
	if c.kinds[kind]%10 != 2 {
		return false
	}
	job.writes.lost++
	return true
}

// shown looks for pods in what the caller reads.
func (c *clusterWatcher) shown(text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pod := range c.pods {
		if pod.unshown && bytes.Contains(text, []byte(`"`+pod.name+`"`)) {
			pod.unshown = false
			c.note(checkUnknown, true, nil, "")
		}
	}
}

// jobOf is the Job of a pod: its controller, or a Job with whose name the pod's name begins.
// nil: no request was about the pod's Job.
func (c *clusterWatcher) jobOf(pod *metav1.ObjectMeta) *watchedJob {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return nil
	}
	if job := c.jobs[uidBytes(owner.UID)]; job != nil {
		return job
	}
	var longest *watchedJob
	for _, job := range c.jobs {
		if strings.HasPrefix(pod.Name+pod.GenerateName, job.short+"-") && (longest == nil || len(job.short) > len(longest.short)) && job.namespace == pod.Namespace {
			longest = job
		}
	}
	return longest
}

func (c *clusterWatcher) watched(j *jobWrites) *watchedJob {
	for _, job := range c.jobs {
		if job.writes == j {
			return job
		}
	}
	return nil
}

// belongsTo reports whether an object may hold the Job's status: it is the Job, or the Job's
// name begins with its name.
func (j *watchedJob) belongsTo(o *object) bool {
	return j.uid == uidBytes(o.UID) || j.namespace == o.Namespace && strings.HasPrefix(j.short, o.Name+"-")
}

// collectStatuses finds all statuses of Jobs in the status of an object: a controller may
// keep several in one object. Each has the shape of a Job's status or of the contract's
// JobStatus as JSON.
func collectStatuses(in any, found map[string]*jobpolicyv1.JobStatus) {
	if list, ok := in.([]any); ok {
		for _, item := range list {
			collectStatuses(item, found)
		}
		return
	}
	fields, ok := in.(map[string]any)
	if !ok {
		return
	}
	for _, field := range fields {
		collectStatuses(field, found)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return
	}
	contract := &jobpolicyv1.JobStatus{}
	if protojson.Unmarshal(text, contract) == nil {
		found[string(essence(contract))] = contract
	}
	api := &batchv1.JobStatus{}
	if json.Unmarshal(text, api) != nil {
		return
	}
	if status, err := wire.JobStatus(api); err == nil {
		found[string(essence(status))] = status
	}
}

// uidBytes is a UID in the form of requests; "" if it is not valid.
func uidBytes(uid types.UID) string {
	b, err := hex.DecodeString(strings.ReplaceAll(string(uid), "-", ""))
	if err != nil {
		return ""
	}
	return string(b)
}
