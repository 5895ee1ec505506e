package world

import (
	"net/http"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/test/simulated/world/apiserver"
)

// playSteps does every step at its time, and returns when the last one is done.
func (w *world) playSteps() {
	timed := slices.DeleteFunc(slices.Clone(w.plan.steps), func(s *step) bool { return s.write > 0 || s.expires || s.ends })
	for _, s := range timed {
		time.Sleep(time.Until(w.begun.Add(min(s.at, w.plan.calm))))
		w.act(s)
	}
	time.Sleep(time.Until(w.begun.Add(w.plan.calm)))
	w.acting.Lock()
	defer w.acting.Unlock()
	w.calm.Store(true)
}

// reached is called when executors have sent this many requests, or the API server has
// committed this many of their writes. A kill without delay takes effect before the
// answer arrives.
func (w *world) reached(n uint64, before bool) {
	if w.calm.Load() {
		return
	}
	for _, s := range w.plan.steps {
		if s.write != int(n) || s.before != before {
			continue
		}
		if s.verb == "kill" && s.at == 0 {
			w.fleet.cutNow(s.n)
		}
		w.after(s.at, func() { w.act(s) })
	}
}

// expiring is called with each request of an executor. An executor reads a finished Job
// before it deletes the Job: then the steps with expires are due.
func (w *world) expiring(r *request) {
	if r.Method != http.MethodGet || r.resource != "jobs" || w.calm.Load() {
		return
	}
	for _, s := range w.plan.steps {
		if !s.expires || !strings.HasSuffix(r.URL.Path, "/namespaces/"+strings.Replace(s.on, "/", "/jobs/", 1)) {
			continue
		}
		if obj, ok := w.server.Get("jobs", s.key()); ok && finished(obj.(*batchv1.Job)) != "" && w.first(s) {
			w.after(s.at, func() { w.act(s) })
		}
	}
}

// endWritten is called with each write of a Job. When an executor writes the Job's end, the steps with
// ends are due.
func (w *world) endWritten(write apiserver.Write, job *batchv1.Job) {
	before, _ := write.Old.(*batchv1.Job)
	if !isExecutor(write.By) || finished(job) == "" || before == nil || finished(before) != "" || w.calm.Load() {
		return
	}
	for _, s := range w.plan.steps {
		if s.ends && s.key() == write.Key && w.first(s) {
			w.after(s.at, func() { w.act(s) })
		}
	}
}

// first reports whether this is the first time that the step is due.
func (w *world) first(s *step) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	again := w.due[s]
	w.due[s] = true
	return !again
}

// act does a step, unless the plan is over.
func (w *world) act(s *step) {
	w.acting.Lock()
	defer w.acting.Unlock()
	if w.calm.Load() {
		return
	}
	w.done[s.verb]++
	w.note(s.who, s.String())
	if err := w.do(s); err != nil {
		w.note(s.who, "in vain: "+err.Error())
	}
}

// later does the second half of a step, early enough before the calm begins.
func (w *world) later(d time.Duration, do func()) {
	left := time.Until(w.begun.Add(w.plan.calm))
	w.after(min(d, left), func() {
		w.acting.Lock()
		defer w.acting.Unlock()
		do()
	})
}
