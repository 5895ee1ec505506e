package engine_test

import (
	"github.com/cockroachdb/datadriven"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// terminating adds a pod that is being deleted and has not ended; without a pod, none is left.
func (s *scene) terminating(args []datadriven.CmdArg) error {
	if len(args) == 0 {
		s.req.TerminatingPods = nil
		return nil
	}
	pod := &jobpolicyv1.TerminatingPod{Uid: uid(args[0].Key), PodName: args[0].Key}
	s.req.TerminatingPods = append(s.req.TerminatingPods, pod)
	return tellFields(pod, args[1:], names{"due": "dueTime"}, nil)
}
