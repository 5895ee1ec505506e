package wire

import (
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// Policy of a Job or CronJob names a JobPolicy, or holds options itself.
const Policy = "jobpolicy.dev/policy"

// HasPolicy reports whether an object asks for options.
func HasPolicy(annotations map[string]string) bool {
	_, has := annotations[Policy]
	return has
}

// PolicySpec reads options.
func PolicySpec(annotations map[string]string) (*jobpolicyv1.PolicySpec, []string) {
	value, has := annotations[Policy]
	if !has {
		return nil, nil
	}
	spec, problems := options.Parse([]byte(value))
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	if len(texts) > 0 {
		return nil, texts
	}
	return spec, nil
}
