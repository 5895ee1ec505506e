package conformance

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// features are what a case covers: fields of the spec, with the values that matter, and
// kinds of steps.
func (c *Case) features() map[string]bool {
	set := map[string]bool{
		"pods that stay pending (manual)": c.Manual,
		"pods that are there before":      c.Before != "",
		"restarts of the controller":      c.inRestarts(),
	}
	c.specFeatures(set)
	policyFeatures(c.Spec, set)
	containerFeatures(c.Spec, set)
	for _, line := range c.Steps {
		steps, err := parseLine(line)
		if err != nil {
			continue
		}
		set["several steps at once"] = set["several steps at once"] || len(steps) > 1
		for _, st := range steps {
			set["step "+st.feature()] = true
		}
	}
	return set
}

func (c *Case) specFeatures(set map[string]bool) {
	s := c.Spec
	is := func(p *int32, want int32) bool { return p != nil && *p == want }
	for name, has := range map[string]bool{
		"mode: NonIndexed, completions":               s.CompletionMode == nil && s.Completions != nil,
		"mode: NonIndexed, work queue":                s.CompletionMode == nil && s.Completions == nil && s.Parallelism != nil && *s.Parallelism > 1,
		"mode: NonIndexed, neither":                   s.CompletionMode == nil && s.Completions == nil && (s.Parallelism == nil || *s.Parallelism <= 1),
		"mode: Indexed":                               s.CompletionMode != nil,
		"completions: 0":                              is(s.Completions, 0),
		"parallelism: 0":                              is(s.Parallelism, 0),
		"parallelism: less than completions":          s.Parallelism != nil && s.Completions != nil && *s.Parallelism < *s.Completions,
		"parallelism: more than completions":          s.Parallelism != nil && s.Completions != nil && *s.Parallelism > *s.Completions,
		"backoffLimit: 0":                             is(s.BackoffLimit, 0),
		"backoffLimit: above 0":                       s.BackoffLimit != nil && *s.BackoffLimit > 0,
		"backoffLimit: unset":                         s.BackoffLimit == nil,
		"backoffLimitPerIndex: 0":                     is(s.BackoffLimitPerIndex, 0),
		"backoffLimitPerIndex: above 0":               s.BackoffLimitPerIndex != nil && *s.BackoffLimitPerIndex > 0,
		"maxFailedIndexes: 0":                         is(s.MaxFailedIndexes, 0),
		"maxFailedIndexes: above 0":                   s.MaxFailedIndexes != nil && *s.MaxFailedIndexes > 0,
		"activeDeadlineSeconds":                       s.ActiveDeadlineSeconds != nil,
		"ttlSecondsAfterFinished":                     s.TTLSecondsAfterFinished != nil,
		"suspend: true at creation":                   s.Suspend != nil && *s.Suspend,
		"manualSelector":                              s.ManualSelector != nil,
		"managedBy: ours":                             s.ManagedBy != nil && *s.ManagedBy == ownManager,
		"managedBy: kubernetes.io":                    s.ManagedBy != nil && *s.ManagedBy == batchv1.JobControllerName,
		"managedBy: another":                          foreign(&batchv1.Job{Spec: s}),
		"podReplacementPolicy: unset":                 s.PodReplacementPolicy == nil && s.PodFailurePolicy == nil,
		"podReplacementPolicy: unset, default Failed": s.PodReplacementPolicy == nil && s.PodFailurePolicy != nil,
	} {
		set[name] = has
	}
	if s.PodReplacementPolicy != nil {
		set["podReplacementPolicy: "+string(*s.PodReplacementPolicy)] = true
	}
}

func policyFeatures(s batchv1.JobSpec, set map[string]bool) {
	if s.SuccessPolicy != nil {
		set["successPolicy: several rules"] = len(s.SuccessPolicy.Rules) > 1
		for _, rule := range s.SuccessPolicy.Rules {
			what := "succeededCount"
			if rule.SucceededIndexes != nil {
				what = "succeededIndexes"
				if rule.SucceededCount != nil {
					what = "both"
				}
			}
			set["successPolicy: "+what] = true
		}
	}
	if s.PodFailurePolicy == nil {
		return
	}
	set["podFailurePolicy: several rules"] = len(s.PodFailurePolicy.Rules) > 1
	for _, rule := range s.PodFailurePolicy.Rules {
		name := "podFailurePolicy: " + string(rule.Action)
		if rule.OnExitCodes == nil {
			set[name+" onPodConditions"] = true
			continue
		}
		set[fmt.Sprintf("%s onExitCodes %s", name, rule.OnExitCodes.Operator)] = true
		set["podFailurePolicy: containerName"] = set["podFailurePolicy: containerName"] || rule.OnExitCodes.ContainerName != nil
	}
}

func containerFeatures(s batchv1.JobSpec, set map[string]bool) {
	pod := s.Template.Spec
	set["template: restartPolicy "+string(pod.RestartPolicy)] = true
	set["template: several containers"] = len(pod.Containers) > 1
	set["template: sidecar"] = slices.ContainsFunc(pod.InitContainers, sidecar)
	set["template: init container"] = slices.ContainsFunc(pod.InitContainers, func(c corev1.Container) bool { return !sidecar(c) })
	set["template: schedulingGates"] = len(pod.SchedulingGates) > 0
}

// feature is the kind of a step.
func (st step) feature() string {
	words := []string{st.verb}
	switch st.verb {
	case "delete", "edit":
		words = append(words, st.word(0))
	case "fail":
		if st.options["condition"] != "" {
			words = append(words, "with a condition")
		}
		if container := st.options["container"]; container != "" {
			words = append(words, "in", container)
		}
	}
	return strings.Join(words, " ")
}
