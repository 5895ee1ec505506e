package world

import (
	"encoding/json"

	"sigs.k8s.io/yaml"

	"jobpolicy.dev/executor/wire"
)

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
		d.endFailures(options)
		j.addOptions(options)
	}
}

// ruleName is the name of a rule of a pod failure policy, by its position.
func ruleName(position int) string { return sprint("rule %d", position) }

// addOptions adds options to those of the Job, as people write them.
func (j *jobPlan) addOptions(more map[string]any) {
	policy := map[string]map[string]any{}
	if text := j.annotations[wire.Policy]; text != "" {
		if err := yaml.Unmarshal([]byte(text), &policy); err != nil {
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
	j.annotations[wire.Policy] = string(text)
}
