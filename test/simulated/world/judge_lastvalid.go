package world

import (
	"cmp"

	batchv1 "k8s.io/api/batch/v1"

	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

// validPolicies are the options of a Job or CronJob that could be read, in the order in which it had them.
type validPolicies []*jobpolicyv1.PolicySpec

// had enters the options of a version.
func (v *validPolicies) had(annotations map[string]string) {
	spec, problems := wire.PolicySpec(annotations)
	if n := len(*v); spec != nil && len(problems) == 0 && (n == 0 || !proto.Equal((*v)[n-1], spec)) {
		*v = append(*v, spec)
	}
}

// wrong says why the annotation with the last valid options is wrong; empty if it is not. It has the options that are
// asked for now, or if these cannot be read, some that could be before: an executor need not have seen the last ones.
// of are the options of a Job, or of a CronJob.
func (v validPolicies) wrong(annotations map[string]string, of func(*jobpolicyv1.PolicySpec) proto.Message) string {
	_, asks := annotations[wire.Policy]
	text, has := annotations[wire.LastValidPolicy]
	_, problems := wire.PolicySpec(annotations)
	may := v
	switch {
	case !asks || len(v) == 0:
		if has {
			return sprint("no options could ever be read, or none are asked for, and it says %s", text)
		}
		return ""
	case len(problems) == 0:
		may = v[len(v)-1:]
	}
	kept := wire.LastValid(annotations)
	for _, spec := range may {
		if kept != nil && proto.Equal(of(kept), of(spec)) {
			return ""
		}
	}
	return sprint("it says %q (there: %t), and the options are %v", text, has, may)
}

// judgeLastValid: with each status of a started Job, the last valid options are written, so that a restart forgets nothing.
func (j *judge) judgeLastValid(w apiserver.Write, r *jobRecord, next *batchv1.Job) {
	of := func(spec *jobpolicyv1.PolicySpec) proto.Message {
		return cmp.Or(spec.GetJob(), &jobpolicyv1.JobOptions{})
	}
	if why := r.valid.wrong(next.Annotations, of); why != "" && next.Status.StartTime != nil && !j.podjob {
		j.breach("options", r.key, r.uid, "%s wrote the annotation %s: %s", w.By, wire.LastValidPolicy, why)
	}
}

// judgeLastValidOfCron is judgeLastValid for a CronJob.
func (j *judge) judgeLastValidOfCron(w apiserver.Write, c *cronRecord) {
	of := func(spec *jobpolicyv1.PolicySpec) proto.Message {
		o := proto.CloneOf(cmp.Or(spec.GetCronJob(), &jobpolicyv1.CronJobOptions{}))
		if group := o.GetGroup(); group.GetName() == cronGroup && j.clusterRuns > 0 {
			group.MaxActiveRuns = int32(j.clusterRuns) // The operator's number takes the place of each.
		}
		return o
	}
	if why := c.valid.wrong(c.cron.Annotations, of); why != "" && w.Subresource == "status" {
		j.breach("options", c.key, c.uid, "%s wrote the annotation %s: %s", w.By, wire.LastValidPolicy, why)
	}
}
