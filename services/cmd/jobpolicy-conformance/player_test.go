package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine/snapshot"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// jobs are what a player plays. All have three tasks, of which the first fails, and
// every third write of a status fails.
const (
	plainJob = iota
	// One creation is refused.
	refusedJob
	// The answer to one creation is lost.
	lostJob
	// Creations are left for later once.
	deferringJob
	// It fails, and a deletion is refused, but no write of a status.
	failingJob
	jobs
)

// A player is a caller whose tasks are values.
type player struct {
	n, step int
	flaw    string
	spec    *jobpolicyv1.JobSpec
	status  *jobpolicyv1.JobStatus
	pods    []snapshot.Pod
	now     time.Time
	trouble bool // There was the trouble that this Job has once.
}

var errTrouble = errors.New("on purpose")

// play plays a Job to its end.
func play(ask answer.Ask, n int, flaw string) {
	p := &player{
		n: n, flaw: flaw, status: &jobpolicyv1.JobStatus{}, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
		spec: &jobpolicyv1.JobSpec{Parallelism: 2, Completions: new(int32(3)), BackoffLimit: 3},
	}
	if n == failingJob {
		p.spec = &jobpolicyv1.JobSpec{Parallelism: 3, Completions: new(int32(3))}
	}
	for p.step = range 60 {
		p.now = p.now.Add(time.Minute)
		d, err := answer.Decide(context.Background(), p.careless(ask), p.request)
		if err != nil && flaw == "gives up" {
			return
		}
		if err == nil && p.carryOut(d) == nil && flaw == "no retry" && d.GetRequeueTime() != nil {
			return
		}
		p.end()
	}
}

func (p *player) request(activePods bool) (*jobpolicyv1.DecideJobRequest, error) {
	request := snapshot.Request(p.spec, p.status, p.pods, snapshot.Options{ActivePods: activePods})
	request.Now, request.Settings = timestamppb.New(p.now), &jobpolicyv1.Settings{PodFailureBackoff: durationpb.New(10 * time.Minute)}
	request.Job = &jobpolicyv1.JobRef{Uid: []byte(fmt.Sprint("job", p.n)), Name: fmt.Sprint("job", p.n)}
	if p.n == deferringJob && p.step < 3 {
		request.Deferrals = []*jobpolicyv1.Deferral{{Step: jobpolicyv1.Step_STEP_CREATE_PODS, Until: timestamppb.New(p.now.Add(time.Second))}}
	}
	if p.flaw == "no confirmation" {
		request.ConfirmedReleases = nil
	}
	return request, nil
}

// careless hides from the player's checks what it does not look at.
func (p *player) careless(ask answer.Ask) answer.Ask {
	return func(ctx context.Context, req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		if p.flaw == "no time" {
			req.Now = nil
		}
		d, err := ask(ctx, req)
		if err != nil {
			return nil, err
		}
		switch p.flaw {
		case "any id":
			d.RequestId = req.RequestId
		case "any field":
			d.ProtoReflect().SetUnknown(nil)
		case "any disposition":
			d.Disposition = jobpolicyv1.Disposition_DISPOSITION_APPLY
		case "early":
			req.Deferrals = nil
		}
		return d, nil
	}
}

// carryOut stops at the first step that fails.
func (p *player) carryOut(d *jobpolicyv1.DecideJobResponse) error {
	if err := p.create(int(d.GetCreate().GetCount())); err != nil && p.flaw != "ignores creation" {
		return err
	}
	if err := p.delete(d.GetDelete()); err != nil && p.flaw != "ignores deletion" {
		return err
	}
	written := p.step%3 != 2 || d.GetStatus() == nil || p.n == failingJob
	if written && d.GetStatus() != nil {
		p.status = d.GetStatus()
		if p.flaw == "other status" {
			p.status.Failed++
		}
	}
	if !written && p.flaw == "deletes unwritten" {
		p.pods = slices.DeleteFunc(p.pods, func(pod snapshot.Pod) bool {
			return slices.ContainsFunc(d.GetRelease(), func(uid []byte) bool { return bytes.Equal(uid, pod.UID) })
		})
	}
	if !written && p.flaw != "releases unwritten" {
		return errTrouble
	}
	for i := range p.pods {
		if slices.ContainsFunc(d.GetRelease(), func(uid []byte) bool { return bytes.Equal(uid, p.pods[i].UID) }) {
			p.pods[i].Tracked = false
		}
	}
	return nil
}

func (p *player) create(count int) error {
	if count > 0 && p.flaw == "one more" {
		count++
	}
	for i := range count {
		troubled := i == 1 && !p.trouble
		if troubled && p.n == refusedJob {
			p.trouble = true
			return errTrouble
		}
		p.add()
		if troubled && p.n == lostJob {
			p.trouble = true
			if p.flaw != "creates again" {
				return errTrouble // The next snapshot has the pod.
			}
			p.add()
		}
	}
	return nil
}

func (p *player) add() {
	p.pods = append(p.pods, snapshot.Pod{
		UID: fmt.Appendf(nil, "%8d%8d", p.n, len(p.pods)), Phase: jobpolicyv1.PodPhase_POD_PHASE_RUNNING, Tracked: true, Created: p.now,
	})
}

func (p *player) delete(pods []*jobpolicyv1.DeletePod) error {
	if p.flaw == "deletes one more" && len(p.pods) > 1 && p.pods[1].Phase == jobpolicyv1.PodPhase_POD_PHASE_RUNNING {
		p.pods[1].Deleting, p.pods[1].DeletionRequested = true, p.now
	}
	for i, d := range pods {
		if i == 1 && !p.trouble {
			p.trouble = true
			return errTrouble
		}
		for j := range p.pods {
			if bytes.Equal(p.pods[j].UID, d.GetUid()) {
				p.pods[j].Deleting, p.pods[j].DeletionRequested = true, p.now
				p.pods[j].Tracked = p.pods[j].Tracked && !d.GetReleaseFirst()
			}
		}
	}
	return nil
}

// end ends one of the tasks that run.
func (p *player) end() {
	if p.n == failingJob && p.trouble && !slices.ContainsFunc(p.pods, func(pod snapshot.Pod) bool { return pod.Deleting }) {
		return
	}
	for i := range p.pods {
		pod := &p.pods[i]
		if pod.Phase != jobpolicyv1.PodPhase_POD_PHASE_RUNNING || p.n == failingJob && i > 0 && !pod.Deleting {
			continue
		}
		pod.Phase, pod.Finished = jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED, p.now
		if i == 0 || pod.Deleting {
			pod.Phase = jobpolicyv1.PodPhase_POD_PHASE_FAILED
		}
		pod.Tracked = pod.Tracked && (p.flaw != "releases at once" || i%2 == 0)
		return
	}
}
