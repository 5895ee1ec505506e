package jobcheck

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/services/internal/manifest"
)

// With more indexes than this, the API server limits parallelism and failed indexes.
const (
	manyIndexes        = 100_000
	limitOfManyIndexes = 10_000
)

func values(s *subject) {
	for _, p := range WrongValues(s.spec) {
		s.find(Error, p.Path, p.Text)
	}
	indexesHaveLimits(s)
}

// WrongValues lists the fields of a Job's spec whose values the API server refuses, such as a word that it does not
// know. Paths begin at the spec. The fields of the pod template and of spec.scheduling are left out.
func WrongValues(spec *batchv1.JobSpec) []manifest.Problem { return wrongFields(spec) }

func indexesHaveLimits(s *subject) {
	n, most := ptr.Deref(s.spec.Completions, 0), s.spec.MaxFailedIndexes
	if most != nil && s.spec.Completions != nil && *most > n {
		s.find(Error, "maxFailedIndexes", fmt.Sprintf("is %d; expected at most completions (%d)", *most, n))
	}
	if s.spec.BackoffLimitPerIndex == nil || n <= manyIndexes {
		return
	}
	switch {
	case most == nil:
		s.find(Error, "maxFailedIndexes", fmt.Sprintf("is required with backoffLimitPerIndex and %d completions, more than %d", n, manyIndexes))
	case *most > limitOfManyIndexes:
		s.find(Error, "maxFailedIndexes", fmt.Sprintf("is %d; with more than %d completions expected at most %d", *most, manyIndexes, limitOfManyIndexes))
	}
	if p := ptr.Deref(s.spec.Parallelism, 1); p > limitOfManyIndexes {
		s.find(Error, "parallelism", fmt.Sprintf("is %d; with backoffLimitPerIndex and more than %d completions expected at most %d", p, manyIndexes, limitOfManyIndexes))
	}
}
