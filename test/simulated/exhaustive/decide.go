package exhaustive

import (
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// planned says what an executor does next: the part of executor/reconcile.go up to the decision. It has no clock and no
// limits, and adopts nothing.
func (w *world) planned(x *executor, waits bool) *plan {
	key := planKey{waits: waits}
	for _, v := range w.events[:x.pods] {
		key.cached[v.n], key.rv = v, v.rv
		if v.gone {
			key.cached[v.n] = nil
		}
	}
	p := x.tracker.plans[key]
	if p == nil {
		p = w.plan(x.tracker, key)
		x.tracker.plans[key] = p
	}
	return p
}

func (w *world) plan(m *trackerState, cache planKey) *plan {
	s := w.replayed(m.all())
	switch job := s.Current(); {
	case job == nil || s.Has(tracker.NotFound):
		return &plan{}
	case s.Has(tracker.StaleJob):
		return &plan{calls: []call{{kind: callGet}}}
	case s.Has(tracker.StalePods) || s.NeedsList():
		return &plan{calls: []call{{kind: callList}}}
	}
	p := &plan{quiet: []op{{kind: clearMark, marks: tracker.StaleClaims}, {kind: sweep, pods: cache.cached, rv: cache.rv}}}
	for _, o := range p.quiet {
		(&replay{Job: s}).tell(o)
	}
	changed := viewOf(s) != m.view
	if p.calls, p.err = w.decide(s, m, cache.waits); len(p.calls) == 0 && !changed {
		p.quiet = nil
	}
	return p
}

// decide asks the engine, and returns the calls that carry the decision out in the order of executor/apply.go.
func (w *world) decide(s *tracker.Job, m *trackerState, waits bool) ([]call, error) {
	if s.MustRefresh() {
		return nil, nil
	}
	d, err := answer.Complete(func(activePods bool) (*jobpolicyv1.DecideJobResponse, error) {
		req, err := w.request(s, m.job.job, activePods)
		if err != nil {
			return nil, err
		}
		if waits {
			req.Deferrals = routine
		}
		d, err := engine.DecideJob(req)
		if err != nil {
			return nil, err
		}
		return d, wire.CheckDecision(req, d)
	})
	if err != nil {
		return nil, err
	}
	return w.callsOf(s, m, d)
}

var settings = &jobpolicyv1.Settings{Explain: jobpolicyv1.Explain_EXPLAIN_NONE}

// routine are the steps that the executor leaves for later after it has written a status.
var routine = []*jobpolicyv1.Deferral{
	{Step: jobpolicyv1.Step_STEP_RECORD_PODS, Until: timestamppb.New(decided.Add(time.Second))},
	{Step: jobpolicyv1.Step_STEP_WRITE_ROUTINE_STATUS, Until: timestamppb.New(decided.Add(time.Second))},
}

func (w *world) request(s *tracker.Job, job *batchv1.Job, activePods bool) (*jobpolicyv1.DecideJobRequest, error) {
	options := tracker.ViewOptions{Uncounted: job.Status.UncountedTerminatedPods, Now: then.Time, MaxRows: 100}
	if activePods {
		options.ActiveRows = 100
	}
	view := s.View(options)
	req, err := view.Request(job, settings, decided)
	if err != nil {
		return nil, err
	}
	req.SeenSuspended = job.Status.StartTime == nil && !isSuspended(job) && s.SeenSuspended()
	return req, nil
}

// callsOf are the calls of a decision.
func (w *world) callsOf(s *tracker.Job, m *trackerState, d *jobpolicyv1.DecideJobResponse) (calls []call, err error) {
	for _, pod := range wire.NewPods(m.job.job, nil, d.GetCreate()) {
		calls = append(calls, call{kind: callCreate, index: pod.Index, create: pod, base: m.job})
	}
	for _, del := range d.GetDelete() {
		uid, err := wire.UIDString(del.GetUid())
		if err != nil {
			return nil, err
		}
		if d.GetVerdict() != nil && !del.GetReleaseFirst() && !hasInterim(m.job.job) {
			return nil, errors.New("pods are deleted for a verdict that is not written")
		}
		calls = append(calls, call{kind: callDelete, n: podNumber(uid), releaseFirst: del.GetReleaseFirst()})
	}
	write, err := statusCall(m, d)
	if err != nil {
		return nil, err
	}
	releases, err := releaseCalls(s, d)
	if err != nil {
		return nil, err
	}
	switch w.scope.Plant {
	case ReleaseBeforeStatus:
		write, releases = releases, write
	case NothingIsReleased:
		releases = nil
	}
	return slices.Concat(calls, write, releases), nil
}

// statusCall writes the status of a decision, if that is another one.
func statusCall(m *trackerState, d *jobpolicyv1.DecideJobResponse) ([]call, error) {
	status, changed, err := wire.NextStatus(d.GetStatus(), &m.job.job.Status)
	if err != nil || !changed {
		return nil, err
	}
	c := call{kind: callStatus, base: m.job, status: &status}
	c.text, c.place = describe(&status)
	for n, v := range m.pods {
		c.knew[n] = v != nil
	}
	return []call{c}, nil
}

// releaseCalls release the pods of a decision that are known to have the finalizer.
func releaseCalls(s *tracker.Job, d *jobpolicyv1.DecideJobResponse) (calls []call, err error) {
	for _, id := range d.GetRelease() {
		uid, err := wire.UIDString(id)
		if err != nil {
			return nil, err
		}
		if pod, known := s.Pod(uid); known && pod.HasTrackingFinalizer {
			calls = append(calls, call{kind: callRelease, n: podNumber(uid)})
		}
	}
	return calls, nil
}
