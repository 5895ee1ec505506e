package jobcheck

import (
	"strings"

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

func (s *subject) policyProblems(path string, annotations map[string]string) {
	_, problems := wire.PolicySpec(annotations)
	for _, problem := range problems {
		s.at(Error, path, strings.TrimPrefix(problem, "annotation "))
	}
}
