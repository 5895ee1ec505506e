package policy

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxProblems and maxProblemBytes are the contract's limits (JobSpec.option_problems).
const (
	maxProblems     = 10
	maxProblemBytes = 1024
)

// Of returns the options of an object with these annotations: of the policy that it names, those that it
// holds itself, or of its namespace's default. problems say why they cannot be read; then spec is nil. If
// nobody asks for options, both are nil.
func (p *Policies) Of(namespace string, annotations map[string]string) (spec *jobpolicyv1.PolicySpec, problems []string) {
	switch name, named, how := p.source(namespace, annotations); {
	case named:
		alternative := ""
		if wire.HasPolicy(annotations) {
			alternative = ", or options in braces, as {job: {…}}"
		}
		return p.named(namespace, name, how, alternative)
	case how != "":
		return p.held(annotations)
	}
	return nil, nil
}

// OfJob is Of for a Job. Options that do not fit its spec (wire.CheckOptions) cannot be used, just as those that
// cannot be read.
func (p *Policies) OfJob(job *batchv1.Job) (*jobpolicyv1.JobOptions, []string) {
	spec, problems := p.Of(job.Namespace, job.Annotations)
	for _, problem := range wire.CheckOptions(job, spec.GetJob()) {
		_, named, how := p.source(job.Namespace, job.Annotations)
		text := fmt.Sprintf("%s: %s", how, problem)
		if named {
			text = fmt.Sprintf("%s, which does not fit the Job: spec.%s", how, problem)
		}
		problems = append(problems, text)
	}
	if len(problems) > 0 {
		return nil, bounded(problems)
	}
	return spec.GetJob(), nil
}

// LastOfJob returns the last valid options of a Job, by its annotation wire.LastValidPolicy; nil: they are not known. The
// operator's limits hold for them, and they must fit the Job's spec.
func (p *Policies) LastOfJob(job *batchv1.Job) *jobpolicyv1.JobOptions {
	return wire.LastJobOptions(job, p.last(job.Annotations))
}

// LastOfCronJob is LastOfJob for a CronJob.
func (p *Policies) LastOfCronJob(cron *batchv1.CronJob) *jobpolicyv1.CronJobOptions {
	return wire.LastCronJobOptions(p.last(cron.Annotations))
}

func (p *Policies) last(annotations map[string]string) *jobpolicyv1.PolicySpec {
	spec := wire.LastValid(annotations)
	if p == nil || spec == nil {
		return spec
	}
	checked := proto.CloneOf(spec)
	if p.OfCluster(spec.GetCronJob().GetGroup().GetName()) {
		checked.CronJob.Group = nil // The number is the operator's, for which limits of users do not hold.
	}
	if len(p.cfg.Bounds.Check(checked)) > 0 {
		return nil
	}
	p.cfg.ClusterGroups.Apply(spec)
	return spec
}

// source says, in how, where the options of an object with these annotations are; empty: nobody asks for any.
// named: in the JobPolicy of that name; otherwise the object holds them itself.
func (p *Policies) source(namespace string, annotations map[string]string) (name string, named bool, how string) {
	if name, named := wire.PolicyName(annotations); named && p != nil {
		return name, true, fmt.Sprintf("annotation %s names the JobPolicy %q", wire.Policy, name)
	}
	if wire.HasPolicy(annotations) {
		return "", false, "annotation " + wire.Policy
	}
	if name := p.defaultOf(namespace); name != "" {
		return name, true, fmt.Sprintf("annotation %s of namespace %q names the JobPolicy %q", wire.DefaultPolicy, namespace, name)
	}
	return "", false, ""
}

// Origin is wire.PolicyOrigin of an object with these annotations.
func (p *Policies) Origin(namespace string, annotations map[string]string) string {
	return wire.PolicyOrigin(namespace, annotations, p.defaultOf(namespace))
}

// Asked reports whether Of may have options for the object.
func (p *Policies) Asked(namespace string, annotations map[string]string) bool {
	return wire.HasPolicy(annotations) || p.defaultOf(namespace) != ""
}

// held are the options that an object holds itself.
func (p *Policies) held(annotations map[string]string) (*jobpolicyv1.PolicySpec, []string) {
	spec, problems := wire.PolicySpec(annotations)
	switch {
	case len(problems) > 0:
		return nil, problems
	case p == nil:
		return spec, nil
	}
	for _, problem := range p.cfg.Bounds.Check(spec) {
		problems = append(problems, fmt.Sprintf("annotation %s: %s", wire.Policy, problem))
	}
	if len(problems) > 0 {
		return nil, bounded(problems)
	}
	p.cfg.ClusterGroups.Apply(spec)
	return spec, nil
}

// OfCluster reports whether a group of CronJobs is one of the cluster, and not of a namespace.
func (p *Policies) OfCluster(group string) bool {
	if p == nil {
		return false
	}
	_, is := p.cfg.ClusterGroups[group]
	return is
}

// named are the options of a policy. how says who names it, and alternative what else could stand there.
func (p *Policies) named(namespace, name, how, alternative string) (*jobpolicyv1.PolicySpec, []string) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, bounded([]string{how + ", which is no name of one: expected the name of a JobPolicy" + alternative})
	}
	policy, why := p.get(namespace, name)
	if policy == nil {
		return nil, bounded([]string{how + ", " + why})
	}
	var problems []string
	for _, problem := range policy.problems {
		problems = append(problems, fmt.Sprintf("%s, which is invalid: %s", how, problem))
	}
	return policy.spec, bounded(problems)
}

func bounded(problems []string) []string {
	for i := range problems {
		problems[i] = wire.Text(problems[i], maxProblemBytes)
	}
	return problems[:min(len(problems), maxProblems)]
}
