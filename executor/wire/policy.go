package wire

import (
	"strings"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// Policy of a Job or CronJob names a JobPolicy, or holds options itself.
const Policy = "jobpolicy.dev/policy"

// IsInlinePolicy reports whether an annotation's value holds options itself.
func IsInlinePolicy(value string) bool { return strings.HasPrefix(strings.TrimSpace(value), "{") }

// InlinePolicy reads options.
func InlinePolicy(value string) (*jobpolicyv1.PolicySpec, []string) {
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
