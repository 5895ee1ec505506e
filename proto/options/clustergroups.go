package options

import (
	"fmt"
	"strconv"
	"strings"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// ClusterGroups are the groups of CronJobs (CronJobOptions.group) that an operator has made groups of the cluster: by
// name, how many runs of CronJobs of all namespaces may be active at the same time.
type ClusterGroups map[string]int32

// Set adds a group: NAME=N.
func (g ClusterGroups) Set(text string) error {
	end := strings.LastIndex(text, "=") // A name may have one, too.
	if end < 0 {
		return fmt.Errorf("%q: expected NAME=N, such as reports=3", text)
	}
	group := &jobpolicyv1.RunGroup{Name: text[:end]}
	n, err := strconv.ParseInt(text[end+1:], 10, 32)
	group.MaxActiveRuns = int32(n)
	if problems := Check(group); err != nil || len(problems) > 0 {
		fields := group.ProtoReflect().Descriptor().Fields()
		return fmt.Errorf("%q: expected NAME=N, with a name%s and a number of runs%s", text,
			LimitsOf(fields.ByName("name")).sized("bytes"), LimitsOf(fields.ByName("max_active_runs")).within())
	}
	if _, has := g[group.GetName()]; has {
		return fmt.Errorf("%q: expected each group once, the name %q comes twice", text, group.GetName())
	}
	g[group.GetName()] = group.GetMaxActiveRuns()
	return nil
}

// Apply puts the operator's number in place of that of a spec whose group is one of the cluster: no user of such a group
// may hold up the others by a small number.
func (g ClusterGroups) Apply(spec *jobpolicyv1.PolicySpec) {
	if n, is := g[spec.GetCronJob().GetGroup().GetName()]; is {
		spec.GetCronJob().GetGroup().MaxActiveRuns = n
	}
}
