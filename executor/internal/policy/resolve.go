package policy

import (
	"fmt"

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
	if name, named := wire.PolicyName(annotations); named && p != nil {
		return p.named(namespace, name, fmt.Sprintf("annotation %s names the JobPolicy %q", wire.Policy, name), ", or options in braces, as {job: {…}}")
	}
	if wire.HasPolicy(annotations) {
		return p.held(annotations)
	}
	if name := p.defaultOf(namespace); name != "" {
		return p.named(namespace, name, fmt.Sprintf("annotation %s of namespace %q names the JobPolicy %q", wire.DefaultPolicy, namespace, name), "")
	}
	return nil, nil
}

// Asked reports whether Of may have options for the object.
func (p *Policies) Asked(namespace string, annotations map[string]string) bool {
	return wire.HasPolicy(annotations) || p.defaultOf(namespace) != ""
}

// held are the options that an object holds itself.
func (p *Policies) held(annotations map[string]string) (*jobpolicyv1.PolicySpec, []string) {
	spec, problems := wire.PolicySpec(annotations)
	if p == nil || spec == nil {
		return spec, problems
	}
	for _, problem := range p.cfg.Bounds.Check(spec) {
		problems = append(problems, fmt.Sprintf("annotation %s: %s", wire.Policy, problem))
	}
	if len(problems) > 0 {
		return nil, bounded(problems)
	}
	return spec, nil
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
