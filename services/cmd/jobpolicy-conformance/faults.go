package main

import (
	"bytes"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// faults are the faults of every second answer with a new status, in turn.
var faults = []string{checkLost, checkOtherAnswer, checkField, checkDisposition}

// errLost replaces a lost answer.
var errLost = status.Error(codes.Unavailable, "the answer is lost, on purpose")

// decide answers as the engine does, but injects faults into some answers. It records requests and
// answers.
func (w *watcher) decide(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
	w.request(req)
	d, err := engine.DecideJob(req)
	w.mu.Lock()
	defer w.mu.Unlock()
	job := w.jobs[string(req.GetJob().GetUid())]
	if err != nil {
		w.note(checkRequests, false, job, err.Error())
		return nil, err
	}
	w.note(checkRequests, true, job, "")
	isNew := d.GetStatus() != nil && !bytes.Equal(essence(d.GetStatus()), job.status)
	if isNew {
		if w.answers++; w.answers%2 == 0 {
			return w.injectFault(job, d, faults[w.answers/2%len(faults)])
		}
	}
	if d.GetCreate() == nil && defersCreation(req) {
		job.early = true
		return createEarly(req, d), nil
	}
	if isNew {
		job.next = essence(d.GetStatus())
		job.decided = append(job.decided, job.next)
		if answer.Finished(d.GetStatus()) != nil {
			job.ended, job.uncounted = true, false
		}
	}
	job.allow(d)
	if w.cluster != nil {
		w.cluster.answered(job, d)
	}
	return d, nil
}

// allow records what the caller may do.
func (j *watchedJob) allow(d *jobpolicyv1.DecideJobResponse) {
	j.created, j.deleted = int64(d.GetCreate().GetCount()), int64(len(d.GetDelete()))
	j.most += j.created
	for _, id := range d.GetRelease() {
		if !j.tracked[string(id)] { // An active pod, which is deleted and released.
			j.fewest--
		}
		j.released[string(id)] = nil
		if d.GetStatus() != nil {
			j.released[string(id)] = essence(d.GetStatus())
		}
	}
	for _, pod := range d.GetDelete() {
		j.deletable[string(pod.GetUid())] = true
		if pod.GetReleaseFirst() {
			j.released[string(pod.GetUid())] = nil
			j.fewest--
		}
	}
}

// injectFault puts a fault into an answer, so that the caller must not carry out any of it.
func (w *watcher) injectFault(job *watchedJob, d *jobpolicyv1.DecideJobResponse, fault string) (*jobpolicyv1.DecideJobResponse, error) {
	job.refused[fault] = essence(d.GetStatus())
	d = proto.CloneOf(d)
	switch fault {
	case checkLost:
		return nil, errLost
	case checkOtherAnswer:
		d.RequestId += "-of-another"
	case checkField:
		d.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 999, protowire.VarintType), 1))
	case checkDisposition:
		d.Disposition = 999
	}
	return d, nil
}

// defersCreation reports whether a request leaves the creation of pods for later.
func defersCreation(req *jobpolicyv1.DecideJobRequest) bool {
	for _, d := range req.GetDeferrals() {
		if d.GetStep() == jobpolicyv1.Step_STEP_CREATE_PODS && d.GetUntil().AsTime().After(req.GetNow().AsTime()) {
			return true
		}
	}
	return false
}

// createEarly answers like an engine that does not know the deferral.
func createEarly(req *jobpolicyv1.DecideJobRequest, d *jobpolicyv1.DecideJobResponse) *jobpolicyv1.DecideJobResponse {
	early := &jobpolicyv1.DecideJobResponse{
		RequestId: d.GetRequestId(), Disposition: jobpolicyv1.Disposition_DISPOSITION_APPLY, Create: &jobpolicyv1.CreatePods{Count: 1},
	}
	if req.GetSpec().GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED {
		early.Create.Indexes = answer.Indexes(0)
	}
	return early
}
