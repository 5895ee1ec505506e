package world

import (
	"encoding/json"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// policyAnnotation holds the options of a Job that the Kubernetes API does not have.
const policyAnnotation = "jobpolicy.dev/policy"

// classified lets Jobs ask for the condition that says how they failed, and gives names to the rules
// of their pod failure policies. It changes nothing that happens to a Job.
func (d *drawer) classified() {
	if d.podjob {
		return
	}
	for i, j := range d.p.jobs {
		if d.begin(uint64(300 + i)); !d.chance(50) {
			continue
		}
		options := map[string]any{"endCondition": true}
		if policy := j.spec.PodFailurePolicy; policy != nil && d.chance(70) {
			var names []string
			for k := range policy.Rules {
				names = append(names, ruleName(k))
			}
			options["failureRuleNames"] = names
		}
		j.setOptions(options)
	}
}

// ruleName is the name of a rule of a pod failure policy, by its position.
func ruleName(position int) string { return sprint("rule %d", position) }

// setOptions adds options to those of the Job, as people write them.
func (j *jobPlan) setOptions(more map[string]any) {
	policy := map[string]map[string]any{}
	if text := j.annotations[policyAnnotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &policy); err != nil {
			panic(err)
		}
	}
	if policy["job"] == nil {
		policy["job"] = map[string]any{}
	}
	for name, value := range more {
		policy["job"][name] = value
	}
	text, err := json.Marshal(policy)
	if err != nil {
		panic(err)
	}
	if j.annotations == nil {
		j.annotations = map[string]string{}
	}
	j.annotations[policyAnnotation] = string(text)
}

// optionsOf are the options of a Job of the plan, for executors that do not read them yet.
func (p *plan) optionsOf(job *jobpolicyv1.JobRef) *jobpolicyv1.JobOptions {
	for _, j := range p.jobs {
		if j.namespace != job.GetNamespace() || j.name != job.GetName() || j.annotations[policyAnnotation] == "" {
			continue
		}
		policy, problems := options.Parse([]byte(j.annotations[policyAnnotation]))
		if len(problems) > 0 {
			panic(problems)
		}
		return policy.GetJob()
	}
	return nil
}
