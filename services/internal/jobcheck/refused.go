package jobcheck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/indexset"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/manifest"
)

// specFits asks the engine, which refuses a spec that contradicts itself.
func specFits(s *subject) {
	if text := RestartPolicyProblem(s.spec); text != "" {
		s.find(Error, "template.spec.restartPolicy", text)
	}
	spec, err := wire.JobSpec(&batchv1.Job{Spec: *s.spec})
	if err != nil {
		s.find(Error, "successPolicy", strings.TrimPrefix(err.Error(), "successPolicy: "))
		return
	}
	spec.Scheduling = nil // The check scheduling reads it.
	_, err = engine.DecideJob(&jobpolicyv1.DecideJobRequest{
		Now: timestamppb.New(time.Unix(0, 0)), Spec: spec, Job: &jobpolicyv1.JobRef{Uid: make([]byte, 16), Namespace: "default", Name: "job"},
	})
	if err == nil {
		return
	}
	unknown := WrongValues(s.spec)
	for _, problem := range unwrap(InManifest(err)) {
		path, text, _ := strings.Cut(problem.Error(), ": ")
		path = strings.TrimPrefix(strings.TrimPrefix(path, "spec"), ".")
		// The engine reports a word that it does not know as missing. The check values names it.
		if !slices.ContainsFunc(unknown, func(p manifest.Problem) bool { return p.Path == path }) {
			s.find(Error, path, text)
		}
	}
}

func failurePolicy(s *subject) {
	if s.spec.PodFailurePolicy == nil {
		return
	}
	var known []string
	for _, c := range slices.Concat(s.spec.Template.Spec.InitContainers, s.spec.Template.Spec.Containers) {
		known = append(known, c.Name)
	}
	ignored := -1
	for i, rule := range s.spec.PodFailurePolicy.Rules {
		path := fmt.Sprintf("podFailurePolicy.rules[%d]", i)
		if on := rule.OnExitCodes; on != nil {
			if on.ContainerName != nil && !slices.Contains(known, *on.ContainerName) {
				s.find(Error, path+".onExitCodes.containerName", fmt.Sprintf("%q is no container of the pod template; expected one of %s", *on.ContainerName, strings.Join(known, ", ")))
			}
			exitCodes(s, path+".onExitCodes.values", on)
		}
		for _, p := range rule.OnPodConditions {
			if p.Type == corev1.DisruptionTarget && rule.Action == batchv1.PodFailurePolicyActionIgnore {
				ignored = i
			}
		}
	}
	for i := range max(ignored, 0) {
		if matchesSignals(s.spec.PodFailurePolicy.Rules[i]) {
			s.find(Warning, fmt.Sprintf("podFailurePolicy.rules[%d]", ignored), fmt.Sprintf(
				"comes too late: a pod that is evicted ends with exit code 137 or 143, which rule %d matches first; put this rule before it", i))
			return
		}
	}
}

func exitCodes(s *subject, path string, on *batchv1.PodFailurePolicyOnExitCodesRequirement) {
	switch {
	case !slices.IsSorted(on.Values):
		s.find(Error, path, "must be in ascending order")
	case len(slices.Compact(slices.Clone(on.Values))) < len(on.Values):
		s.find(Error, path, "must not hold a value twice")
	case on.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && slices.Contains(on.Values, 0):
		s.find(Error, path, "must not hold 0 with the operator In: a container that ends with 0 has not failed")
	}
}

// matchesSignals reports whether a rule matches a container that a signal ended.
func matchesSignals(rule batchv1.PodFailurePolicyRule) bool {
	on := rule.OnExitCodes
	if on == nil {
		return false
	}
	in := slices.Contains(on.Values, 137) || slices.Contains(on.Values, 143)
	if on.Operator == batchv1.PodFailurePolicyOnExitCodesOpNotIn {
		return !(slices.Contains(on.Values, 137) && slices.Contains(on.Values, 143))
	}
	return in
}

func successPolicy(s *subject) {
	if s.spec.SuccessPolicy == nil || s.spec.Completions == nil {
		return
	}
	n := *s.spec.Completions
	if len(s.spec.SuccessPolicy.Rules) == 0 {
		s.find(Error, "successPolicy.rules", "is required: expected at least one rule")
	}
	for i, rule := range s.spec.SuccessPolicy.Rules {
		path := fmt.Sprintf("successPolicy.rules[%d]", i)
		most := int64(n)
		if rule.SucceededIndexes != nil {
			set, err := wire.ParseIndexes(*rule.SucceededIndexes)
			if err != nil {
				continue // specFits reports it
			}
			var all indexset.Set
			for _, r := range set.GetRanges() {
				one, _ := indexset.FromRanges([]indexset.Range{{First: r.GetFirst(), Last: r.GetLast()}})
				all = all.Union(one)
			}
			if outside := all.Minus(all.Below(n)); !outside.Empty() {
				s.find(Error, path+".succeededIndexes", fmt.Sprintf("names indexes that the Job does not have; completions is %d", n))
			}
			most = all.Len()
		}
		if rule.SucceededCount != nil && int64(*rule.SucceededCount) > most {
			s.find(Error, path+".succeededCount", fmt.Sprintf("is %d, of %d indexes", *rule.SucceededCount, most))
		}
	}
}

// maxManagedBy is how long spec.managedBy may be.
const maxManagedBy = 63

func managedBy(s *subject) {
	if s.spec.ManagedBy == nil {
		return
	}
	name := *s.spec.ManagedBy
	switch {
	case len(name) > maxManagedBy || len(validation.IsDomainPrefixedPath(field.NewPath("managedBy"), name)) > 0:
		s.find(Error, "managedBy", fmt.Sprintf("%q: expected a name with a domain in front, such as jobpolicy.dev/executor, of at most %d characters", name, maxManagedBy))
	case name == batchv1.JobControllerName || name == "jobpolicy.dev/executor" || name == "kueue.x-k8s.io/multikueue":
	default:
		s.find(Warning, "managedBy", fmt.Sprintf("%q must be installed: otherwise nobody acts on the Job and nothing says so; the field cannot be changed later", name))
	}
}
