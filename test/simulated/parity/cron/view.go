package cron

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// view is the state of the side, in lines that mean the same on both sides.
func (s *side) view() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	if cron := s.cron; cron != nil {
		lines = append(lines, fmt.Sprintf("status: last schedule %s, last success %s, suspended %v",
			at(cron.Status.LastScheduleTime), at(cron.Status.LastSuccessfulTime), cron.Spec.Suspend != nil && *cron.Spec.Suspend))
		var active []string
		for _, ref := range cron.Status.Active {
			active = append(active, ref.Name+" "+ref.Kind+" "+ref.APIVersion)
		}
		slices.Sort(active)
		lines = append(lines, "active: "+strings.Join(active, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(s.runs)) {
		lines = append(lines, "job "+jobLine(s.runs[name]))
	}
	seen := map[string]bool{}
	for _, ev := range s.events {
		seen[fmt.Sprintf("event %s %s: %s", ev.Type, ev.Reason, ev.Message)] = true
	}
	return append(lines, slices.Sorted(maps.Keys(seen))...)
}

// eventAllowance is how many events of one object client-go sends in a short time; it drops
// further ones (the spam filter of its event correlator).
const eventAllowance = 25

// isCrowded reports whether the object's allowance is used up, or nearly so: an
// event may be on its way.
func (s *side) isCrowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sent int32
	for _, ev := range s.events {
		sent += max(1, ev.Count)
	}
	return sent >= eventAllowance-2
}

func withoutEvents(view []string) []string {
	return slices.DeleteFunc(view, func(line string) bool { return strings.HasPrefix(line, "event ") })
}

func jobLine(job *batchv1.Job) string {
	var owners []string
	for _, ref := range job.OwnerReferences {
		owners = append(owners, fmt.Sprintf("%s/%s %s controller=%v block=%v", ref.APIVersion, ref.Kind, ref.Name, *ref.Controller, *ref.BlockOwnerDeletion))
	}
	annotations := maps.Clone(job.Annotations)
	delete(annotations, pokeAnnotation)
	state := "active"
	if c := finishedCondition(job); c != nil {
		state = string(c.Type)
	}
	if job.DeletionTimestamp != nil {
		state += ", deleted " + strings.Join(job.Finalizers, " ")
	}
	return fmt.Sprintf("%s %s labels=%v annotations=%v owners=%v", job.Name, state, job.Labels["of"], annotations, owners)
}

func finishedCondition(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c
		}
	}
	return nil
}

func at(t *metav1.Time) string {
	if t == nil {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}
