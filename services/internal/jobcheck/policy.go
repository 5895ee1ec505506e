package jobcheck

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"jobpolicy.dev/executor/wire"
)

// policy finds options that cannot be read. A CronJob's policy is for the CronJob, and its
// template's is for the Jobs.
func policy(s *subject) {
	s.policyProblems("metadata.annotations", s.object.Annotations)
	if s.cron != nil {
		s.policyProblems("spec.jobTemplate.metadata.annotations", s.annotations)
	}
}

// policyProblems looks at the policy of a Job or CronJob. If the files have the one that it names, the annotation holds
// its options (manifest.UsePolicies).
func (s *subject) policyProblems(path string, annotations map[string]string) {
	if name, named := wire.PolicyName(annotations); named {
		s.policyName(path, name)
		return
	}
	_, problems := wire.PolicySpec(annotations)
	for _, problem := range problems {
		s.at(Error, path, strings.TrimPrefix(problem, "annotation "))
	}
}

func (s *subject) policyName(path, name string) {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		s.at(Error, path, fmt.Sprintf("%s: %q: expected the name of a JobPolicy, or options in braces, as {job: {…}}", wire.Policy, name))
		return
	}
	s.at(Note, path, fmt.Sprintf("%s names the JobPolicy %q, which no file has, or only with mistakes: the Job does not start before the cluster has it", wire.Policy, name))
}
