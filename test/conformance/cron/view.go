package cron

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func sameStatus(a, b *batchv1.CronJob) bool {
	return apiequality.Semantic.DeepEqual(a.Status, b.Status)
}

// view is what a namespace shows, in lines that mean the same on both sides.
func (s *side) view(namespace string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	if cron := s.crons[namespace]; cron != nil {
		lines = append(lines, fmt.Sprintf("status: last schedule %s, last success %s, suspended %v",
			at(cron.Status.LastScheduleTime), at(cron.Status.LastSuccessfulTime), cron.Spec.Suspend != nil && *cron.Spec.Suspend))
		var active []string
		for _, ref := range cron.Status.Active {
			active = append(active, ref.Name+" "+ref.Kind+" "+ref.APIVersion)
		}
		slices.Sort(active)
		lines = append(lines, "active: "+strings.Join(active, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(s.runs[namespace])) {
		lines = append(lines, "job "+jobLine(s.runs[namespace][name]))
	}
	seen := map[string]bool{}
	for _, ev := range s.events[namespace] {
		seen[fmt.Sprintf("event %s %s: %s", ev.Type, ev.Reason, ev.Message)] = true
	}
	return append(lines, slices.Sorted(maps.Keys(seen))...)
}

// eventAllowance is how many events of one object client-go sends in a short time;
// it drops what comes then (the spam filter of its event correlator).
const eventAllowance = 25

// crowded reports whether the allowance of a namespace's object is used up, or
// nearly so: an event may be on its way.
func (s *side) crowded(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sent int32
	for _, ev := range s.events[namespace] {
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

// difference shows both views in one list: "-" built-in only, "+" ours only.
func difference(builtin, ours []string) string {
	var out []string
	for _, line := range builtin {
		mark := "  "
		if !slices.Contains(ours, line) {
			mark = "- "
		}
		out = append(out, mark+line)
	}
	for _, line := range ours {
		if !slices.Contains(builtin, line) {
			out = append(out, "+ "+line)
		}
	}
	return "    " + strings.Join(out, "\n    ")
}
