package check

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/unknown"
)

// requests finds what is unknown in a request of any kind.
var requests = unknown.NewFinder(
	// An unknown step may be ignored: the caller refuses a decision that takes a step
	// which it deferred.
	[]protoreflect.FullName{"jobpolicy.v1.Deferral.step"},
	&jobpolicyv1.DecideJobRequest{},
	&jobpolicyv1.DecideCronJobRequest{},
	&jobpolicyv1.CheckJobStatusRequest{},
	&jobpolicyv1.MatchPodFailurePolicyRequest{},
	&jobpolicyv1.MatchSuccessPolicyRequest{},
	&jobpolicyv1.ComputePodBackoffRequest{},
	&jobpolicyv1.ChoosePodsToDeleteRequest{},
	&jobpolicyv1.ComputeIndexesRequest{},
	&jobpolicyv1.ComputeDeadlinesRequest{},
	&jobpolicyv1.ListScheduledRunsRequest{},
)

// Known returns an *UnsupportedError if a request has a field or an enum
// value, at any depth, that this engine does not know and must not ignore. A
// decision on a request that is only partly understood would be wrong. req is one of
// the requests that functions of this module take.
func Known(req proto.Message) error {
	if found := requests.Find(req); found != nil {
		return &UnsupportedError{Field: found.Path, Description: found.What + ", which needs a newer engine"}
	}
	return nil
}
