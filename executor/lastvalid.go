package executor

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// A started Job goes on with its last valid options when they cannot be read any more. Another process knows them from
// the Job's annotation wire.LastValidPolicy, which goes with each status: no write more, and no right more than for
// statuses. Only when the options become unreadable, and the annotation has others than those that count, there is a
// write of its own (keepOptions), before anything is done with them.

// lastValid is the annotation that the Job is to have with a status: the options of the snapshot if it asks for any.
// Before its start nothing counts but what it asks for, so the annotation stays.
func (s *snapshot) lastValid(status *batchv1.JobStatus) string {
	asked, problems := s.req.GetSpec().GetOptions(), s.req.GetSpec().GetOptionProblems()
	switch {
	case status.StartTime == nil, asked == nil && len(problems) > 0:
		return s.job.Annotations[wire.LastValidPolicy]
	case len(problems) == 0 && !s.asks:
		return ""
	case asked == nil:
		asked = &jobpolicyv1.JobOptions{}
	}
	return options.Format(&jobpolicyv1.PolicySpec{Job: asked})
}

// keepOptions writes the annotation if the Job's options cannot be read any more and it has others than those that count.
// kept: there is a new version of the Job, to decide on.
func (a *applier) keepOptions(ctx context.Context, s *tracker.Job, calls *api.Pods, snap snapshot) (kept bool, err error) {
	if len(snap.req.GetSpec().GetOptionProblems()) == 0 {
		return false, nil
	}
	text := snap.lastValid(&snap.job.Status)
	if text == snap.job.Annotations[wire.LastValidPolicy] || s.HasKeptOptions(text) {
		return false, nil
	}
	write := tracker.StatusWrite{Job: snap.job, Status: snap.job.Status, LastValid: text}
	if err := a.sendStatus(ctx, s, calls, &write); err != nil {
		return false, fmt.Errorf("keeping the last valid options: %w", err)
	}
	s.KeptOptions(text)
	return true, nil
}
