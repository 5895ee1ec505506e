package engine_test

import (
	"bytes"
	"slices"

	"github.com/cockroachdb/datadriven"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// over adds a finished pod that is accounted for, or will be with the next status; without a pod, none is left.
func (s *scene) over(args []datadriven.CmdArg) error {
	if len(args) == 0 {
		s.req.FinishedPods = &jobpolicyv1.FinishedPods{}
		return nil
	}
	pod := &jobpolicyv1.FinishedPod{Uid: uid(args[0].Key), Phase: jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED}
	err := tellFields(pod, args[1:], names{"at": "finishedTime"}, nil)
	s.addFinished(pod, 1)
	return err
}

func (s *scene) addFinished(pod *jobpolicyv1.FinishedPod, sign int32) {
	if s.req.FinishedPods == nil {
		s.req.FinishedPods = &jobpolicyv1.FinishedPods{}
	}
	f := s.req.FinishedPods
	if pod.GetPhase() == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED {
		f.Succeeded += sign
	} else {
		f.Failed += sign
	}
	if sign > 0 {
		f.First = append(f.First, pod)
		return
	}
	f.First = slices.DeleteFunc(f.First, func(p *jobpolicyv1.FinishedPod) bool { return bytes.Equal(p.GetUid(), pod.GetUid()) })
}

// deleteFinished takes the finished pods away that a decision deletes.
func (s *scene) deleteFinished(resp *jobpolicyv1.DecideJobResponse) {
	for _, uid := range resp.GetDeleteFinished() {
		i := slices.IndexFunc(s.req.GetFinishedPods().GetFirst(), func(p *jobpolicyv1.FinishedPod) bool { return bytes.Equal(p.GetUid(), uid) })
		s.addFinished(s.req.FinishedPods.First[i], -1)
	}
}
