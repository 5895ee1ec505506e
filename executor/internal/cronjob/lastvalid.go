package cronjob

import (
	"context"

	"jobpolicy.dev/executor/internal/api"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// lastValid is the annotation wire.LastValidPolicy that the CronJob is to have: the options of the snapshot if it asks for
// any. It goes with each status.
func (snap *snapshot) lastValid() string {
	asked, problems := snap.req.GetSpec().GetOptions(), snap.req.GetSpec().GetOptionProblems()
	switch {
	case asked == nil && len(problems) > 0:
		return snap.cron.Annotations[wire.LastValidPolicy]
	case len(problems) == 0 && !snap.asks:
		return ""
	case asked == nil:
		asked = noOptions
	}
	return options.Format(&jobpolicyv1.PolicySpec{CronJob: asked})
}

// keepOptions writes the annotation if the CronJob's options cannot be read any more and it has others than those that
// count. kept: there is a new version of the CronJob, to decide on.
func (a *applier) keepOptions(ctx context.Context, s *cronState, snap snapshot) (kept bool, err error) {
	if len(snap.req.GetSpec().GetOptionProblems()) == 0 {
		return false, nil
	}
	text := snap.lastValid()
	with := snap.cron.ObjectMeta
	wire.WithLastValid(&with, text)
	fitting := with.Annotations[wire.LastValidPolicy]
	if fitting == snap.cron.Annotations[wire.LastValidPolicy] || s.hasKept(text) {
		return false, nil
	}
	edit := api.CronJobEdit{Annotations: map[string]*string{wire.LastValidPolicy: &fitting}}
	if fitting == "" {
		edit.Annotations[wire.LastValidPolicy] = nil // There is no room for it.
	}
	edited, err := a.api.EditCronJob(ctx, &s.refusals, snap.cron, edit)
	if edited != nil {
		s.observe(edited)
	}
	if err != nil {
		return false, err
	}
	s.keeps(text)
	return true, nil
}

func (s *cronState) keeps(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = text
}

// hasKept reports whether that text was written last. The annotation may lack it all the same: an admission webhook may
// have taken it out.
func (s *cronState) hasKept(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept == text
}
