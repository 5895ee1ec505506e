package jobcheck

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"jobpolicy.dev/executor/wire"
)

// policy finds options that cannot be read. A CronJob's policy is for the CronJob, and its
// template's is for the Jobs.
func policy(s *subject) {
	path := "metadata.annotations"
	s.lastValid(path, s.object.Annotations)
	if s.cron != nil {
		_, problems := wire.PolicySpec(s.object.Annotations)
		s.policyProblems(path, s.object.Annotations, problems, "a CronJob that the executor has not run with valid options starts no run before the cluster has it")
		path = "spec.jobTemplate.metadata.annotations"
		s.lastValid(path, s.annotations)
	}
	s.policyProblems(path, s.annotations, s.optionProblems(), "the Job does not start before the cluster has it")
}

// optionProblems are what is wrong with the options of the Job: also that they do not fit its spec.
func (s *subject) optionProblems() []string {
	job := &batchv1.Job{Spec: batchv1.JobSpec{PodFailurePolicy: s.spec.PodFailurePolicy}}
	job.Annotations = s.annotations
	spec, _ := wire.JobSpec(job) // its errors are about other fields
	return spec.GetOptionProblems()
}

// lastValid tells of an annotation that only the executor writes. In a manifest it is from another object.
func (s *subject) lastValid(path string, annotations map[string]string) {
	if _, has := annotations[wire.LastValidPolicy]; has {
		s.at(Note, path, wire.LastValidPolicy+": the executor writes it, and goes on with its options when the policy of a started Job, or of a CronJob, "+
			"cannot be read any more: leave it out of manifests")
	}
}

// policyProblems tells problems with the policy of a Job or CronJob. If the files have the one that it names, the
// annotation holds its options (manifest.UsePolicies). without says what happens while the cluster lacks that policy.
func (s *subject) policyProblems(path string, annotations map[string]string, problems []string, without string) {
	if name, named := wire.PolicyName(annotations); named {
		s.policyName(path, name, without)
		return
	}
	for _, problem := range problems {
		s.at(Error, path, strings.TrimPrefix(problem, "annotation "))
	}
}

func (s *subject) policyName(path, name, without string) {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		s.at(Error, path, fmt.Sprintf("%s: %q: expected the name of a JobPolicy, or options in braces, as {job: {…}}", wire.Policy, name))
		return
	}
	s.at(Note, path, fmt.Sprintf("%s names the JobPolicy %q, which no file has, or only with mistakes: %s", wire.Policy, name, without))
}
