package options

import (
	"cmp"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// CompareClaims is the order of the line of a group (GroupClaim): runs that were asked for by hand, then those
// that wait since the earliest time; of the same time, by the namespaces and then the names of their CronJobs.
func CompareClaims(a, b *jobpolicyv1.GroupClaim) int {
	byHand := func(c *jobpolicyv1.GroupClaim) int {
		if c.GetSince() == nil {
			return 0
		}
		return 1
	}
	return cmp.Or(byHand(a)-byHand(b), a.GetSince().AsTime().Compare(b.GetSince().AsTime()),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetCronJob(), b.GetCronJob()))
}
