package world

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/simulated/world/apiserver"
)

// A question is an executor's question about a Job.
type question struct {
	by  string
	job types.UID
}

// asked is called when an executor asks about a Job.
func (j *judge) asked(by string, job types.UID, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.nonsense, question{by, job})
	if who := j.writer(by); who.asked.IsZero() {
		who.asked = now
	}
	if r := j.jobs[job]; r != nil && r.clockUnseen {
		r.clockUnseen, r.clockSeen = false, now
	}
}

// garbled is called when an executor got an answer that breaks the contract.
func (j *judge) garbled(by string, job types.UID, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.nonsense[question{by, job}] = now
}

// judgeAnswer: an executor applies nothing of an answer that breaks the contract.
func (j *judge) judgeAnswer(w apiserver.Write, r *jobRecord) {
	if at, ok := j.nonsense[question{w.By, r.uid}]; ok {
		j.breach("answer", r.key, r.uid, "%s wrote (%s %s %s) after an answer that the contract does not allow, %s before, and such an answer is refused as a whole",
			w.By, w.Verb, w.Resource, w.Key.Name, w.Time.Sub(at))
	}
}
