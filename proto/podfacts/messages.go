package podfacts

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// tellLast leaves termination messages only in the rows of those pods whose containers were restarted last, as many as the
// end of the Job may tell. A request that asks about restarts has a row for each active pod: with all their
// messages it may be larger than an engine takes, and then the Job would never fail.
func tellLast(rows []*jobpolicyv1.ActivePod, options *jobpolicyv1.JobOptions) {
	says := slices.DeleteFunc(slices.Clone(rows), func(row *jobpolicyv1.ActivePod) bool { return row.GetLastExit().GetTerminationMessage() == "" })
	slices.SortStableFunc(says, func(a, b *jobpolicyv1.ActivePod) int {
		at, bt := a.GetLastExitTime(), b.GetLastExitTime()
		return cmp.Or(cmp.Compare(bt.GetSeconds(), at.GetSeconds()), cmp.Compare(bt.GetNanos(), at.GetNanos()), cmp.Compare(a.GetPodName(), b.GetPodName()))
	})
	for _, row := range says[min(len(says), int(options.GetEndConditionFailures())):] {
		row.LastExit = withoutMessage(row.GetLastExit())
	}
}

// withoutMessages are the exits without their termination messages. The slice and its items stay as they are.
func withoutMessages(exits []*jobpolicyv1.ContainerExit) []*jobpolicyv1.ContainerExit {
	exits = slices.Clone(exits)
	for i, exit := range exits {
		exits[i] = withoutMessage(exit)
	}
	return exits
}

func withoutMessage(exit *jobpolicyv1.ContainerExit) *jobpolicyv1.ContainerExit {
	if exit.GetTerminationMessage() == "" {
		return exit
	}
	exit = proto.CloneOf(exit)
	exit.TerminationMessage = ""
	return exit
}
