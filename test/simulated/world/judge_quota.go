package world

import (
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	// firstTry is how long an executor waits after a quota has refused a pod of a Job. Each further refusal in a row doubles
	// that, up to longestTry.
	firstTry, longestTry = time.Second, time.Minute
	// oneTry is how long the creations of one decision take at most: some may be under way when the first one is refused.
	oneTry = 500 * time.Millisecond
)

// A quotaRefusal is the last try to create a pod of a Job if a quota refused that.
type quotaRefusal struct {
	by string
	at time.Time
	// first is the first one of the same decision.
	first time.Time
	// inARow is how many tries failed in a row while nothing happened to the Job; the executor may count more.
	inARow int
}

// createsPod tells of the API server's answer to an executor's creation of a pod.
func (l *link) createsPod(r *request, code int, body []byte) (quotaRefused bool) {
	quotaRefused = code == http.StatusForbidden && strings.Contains(statusMessage(body), "exceeded quota")
	object, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), r.body)
	if pod, ok := object.(*corev1.Pod); ok && err == nil {
		l.podTried(l.by, controllerUID(pod), quotaRefused, time.Now())
	}
	return quotaRefused
}

// podTried is called when the API server has answered an executor's creation of a pod of a Job; refused: a quota is
// used up. If a quota refused the one before, too, and nothing has happened since, the time between them is the executor's
// delay, which the Job's options may limit. So it tries again in time after the quota has room, and not all the time before.
func (j *judge) podTried(by string, job types.UID, refused bool, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.now = now
	r := j.jobs[job]
	if r == nil {
		return
	}
	last := r.quotaRefused
	waited, quiet := now.Sub(last.at), last.by == by && j.quietSince(r, last.at)
	counts := quiet && j.allSeen(r, last.at)
	r.quotaRefused = quotaRefusal{}
	if refused {
		r.quotaRefused = last.next(by, now, counts)
	}
	if !quiet || now.Sub(last.first) < oneTry {
		return
	}
	least, most := min(firstTry<<min(last.inARow-1, 10), longestTry), longestTry
	if own := optionsOf(r.job).RetryDelay; own != nil && own.QuotaMaxSeconds > 0 {
		most = min(most, time.Duration(own.QuotaMaxSeconds)*time.Second)
	}
	if least = min(least, most); counts && waited < least {
		j.breach("options", r.key, r.uid, "%s tried again to create a pod %s after a quota had refused one the %d. time, and the delay is %s", by, waited, last.inARow, least)
	}
	if waited > most+j.triesWithin() {
		j.breach("options", r.key, r.uid, "%s tried again to create a pod %s after a quota had refused one, and the delay is %s at most", by, waited, most)
	}
}

// next is the refusal that follows; counts: it is one more in a row, or of the same decision.
func (q quotaRefusal) next(by string, now time.Time, counts bool) quotaRefusal {
	next := quotaRefusal{by: by, at: now, first: now, inARow: 1}
	switch {
	case counts && now.Sub(q.first) < oneTry:
		next.inARow, next.first = q.inARow, q.first
	case counts:
		next.inARow = q.inARow + 1
	}
	return next
}

// allSeen reports whether an executor had seen at a time all that had happened to a Job. If it sees the end of a pod later,
// it tries again at once, and counts from the beginning.
func (j *judge) allSeen(r *jobRecord, at time.Time) bool {
	age := j.calmLag
	if j.troubled() {
		age = j.lag
	}
	for _, happened := range []time.Time{r.lastStimulus, r.touched, j.touched[r.key.Namespace], r.lastOurs} {
		if !happened.Before(at.Add(-age)) {
			return false
		}
	}
	return true
}

// quietSince reports whether nothing has happened since a time that concerns a Job or keeps executors from acting.
func (j *judge) quietSince(r *jobRecord, at time.Time) bool {
	for _, happened := range []time.Time{r.lastStimulus, r.touched, j.touched[r.key.Namespace], j.troubledAt, j.hinderedAt} {
		if !happened.Before(at) {
			return false
		}
	}
	return !j.rivals && j.askew() == 0
}

// triesWithin is how much later than its delay ends an executor may try again.
func (j *judge) triesWithin() time.Duration {
	if j.busy {
		return besideBusy
	}
	return prompt
}
