package jobcheck

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/services/internal/manifest"
)

// With more indexes than this, the API server limits parallelism and failed indexes.
const (
	manyIndexes        = 100_000
	limitOfManyIndexes = 10_000
)

func values(s *subject) {
	s.unknown(UnknownWords(s.spec))
	manyIndexesHaveLimits(s)
	if s.spec.PodFailurePolicy == nil {
		return
	}
	for i, rule := range s.spec.PodFailurePolicy.Rules {
		for k, pattern := range rule.OnPodConditions {
			s.valid(fmt.Sprintf("podFailurePolicy.rules[%d].onPodConditions[%d].type", i, k), string(pattern.Type), validation.IsQualifiedName)
		}
	}
}

// UnknownWords lists the fields of a Job's spec whose value is none of the words that the API
// knows. Paths begin at the spec.
func UnknownWords(spec *batchv1.JobSpec) []manifest.Problem {
	var w words
	if mode := spec.CompletionMode; mode != nil {
		w.oneOf("completionMode", string(*mode), string(batchv1.NonIndexedCompletion), string(batchv1.IndexedCompletion))
	}
	if policy := spec.PodReplacementPolicy; policy != nil {
		w.oneOf("podReplacementPolicy", string(*policy), string(batchv1.TerminatingOrFailed), string(batchv1.Failed))
	}
	if spec.PodFailurePolicy == nil {
		return w
	}
	for i, rule := range spec.PodFailurePolicy.Rules {
		path := fmt.Sprintf("podFailurePolicy.rules[%d]", i)
		if rule.Action != "" {
			w.oneOf(path+".action", string(rule.Action), string(batchv1.PodFailurePolicyActionFailJob), string(batchv1.PodFailurePolicyActionFailIndex),
				string(batchv1.PodFailurePolicyActionIgnore), string(batchv1.PodFailurePolicyActionCount))
		}
		if on := rule.OnExitCodes; on != nil && on.Operator != "" {
			w.oneOf(path+".onExitCodes.operator", string(on.Operator), string(batchv1.PodFailurePolicyOnExitCodesOpIn), string(batchv1.PodFailurePolicyOnExitCodesOpNotIn))
		}
		for k, pattern := range rule.OnPodConditions {
			w.oneOf(fmt.Sprintf("%s.onPodConditions[%d].status", path, k), string(pattern.Status),
				string(corev1.ConditionTrue), string(corev1.ConditionFalse), string(corev1.ConditionUnknown))
		}
	}
	return w
}

func (s *subject) unknown(w words) {
	for _, p := range w {
		s.find(Error, p.Path, p.Text)
	}
}

// words are words that the API does not know.
type words []manifest.Problem

func (w *words) oneOf(path, value string, known ...string) {
	if !slices.Contains(known, value) {
		*w = append(*w, manifest.Problem{Path: path, Text: fmt.Sprintf("%q: expected one of %s", value, strings.Join(known, ", "))})
	}
}

// valid reports a text that does not have the form that the API server requires. It
// ignores an empty text.
func (s *subject) valid(path, text string, problems func(string) []string) {
	if text == "" {
		return
	}
	if list := problems(text); len(list) > 0 {
		s.find(Error, path, fmt.Sprintf("%q: %s", text, list[0]))
	}
}

func manyIndexesHaveLimits(s *subject) {
	n := ptr.Deref(s.spec.Completions, 0)
	if s.spec.BackoffLimitPerIndex == nil || n <= manyIndexes {
		return
	}
	switch most := s.spec.MaxFailedIndexes; {
	case most == nil:
		s.find(Error, "maxFailedIndexes", fmt.Sprintf("is required with backoffLimitPerIndex and %d completions, more than %d", n, manyIndexes))
	case *most > limitOfManyIndexes:
		s.find(Error, "maxFailedIndexes", fmt.Sprintf("is %d; with more than %d completions expected at most %d", *most, manyIndexes, limitOfManyIndexes))
	}
	if p := ptr.Deref(s.spec.Parallelism, 1); p > limitOfManyIndexes {
		s.find(Error, "parallelism", fmt.Sprintf("is %d; with backoffLimitPerIndex and more than %d completions expected at most %d", p, manyIndexes, limitOfManyIndexes))
	}
}
