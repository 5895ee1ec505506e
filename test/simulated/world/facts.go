package world

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// add adds a fact unless it is empty.
func add(out []string, name string, value any) []string {
	text := fmt.Sprint(value)
	if text == "" || text == "0" || text == "[]" || text == "false" {
		return out
	}
	return append(out, name+"="+text)
}

func jobFacts(j *batchv1.Job) []string {
	s := &j.Status
	out := add(nil, "suspend", valueOr(j.Spec.Suspend, false))
	out = add(out, "parallelism", valueOr(j.Spec.Parallelism, 1))
	if j.Spec.Completions != nil {
		out = append(out, fmt.Sprintf("completions=%d", *j.Spec.Completions))
	}
	if j.Spec.TTLSecondsAfterFinished != nil {
		out = append(out, fmt.Sprintf("ttl=%d", *j.Spec.TTLSecondsAfterFinished))
	}
	out = add(out, "active", s.Active)
	out = add(out, "ready", valueOr(s.Ready, 0))
	out = add(out, "terminating", valueOr(s.Terminating, 0))
	out = add(out, "succeeded", s.Succeeded)
	out = add(out, "failed", s.Failed)
	out = add(out, "indexes", s.CompletedIndexes)
	out = add(out, "failedIndexes", valueOr(s.FailedIndexes, ""))
	if u := s.UncountedTerminatedPods; u != nil {
		out = add(out, "uncountedSucceeded", short(u.Succeeded))
		out = add(out, "uncountedFailed", short(u.Failed))
	}
	if s.StartTime != nil {
		out = append(out, "started="+s.StartTime.UTC().Format("15:04:05"))
	}
	for _, c := range s.Conditions {
		out = append(out, fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason))
	}
	return out
}

// short are the first digits of UIDs.
func short(uids []types.UID) []string {
	out := make([]string, len(uids))
	for i, uid := range uids {
		out[i] = string(uid)[:min(8, len(uid))]
	}
	return out
}

func podFacts(p *corev1.Pod) []string {
	out := []string{"uid=" + string(p.UID)[:min(8, len(p.UID))], "phase=" + string(p.Status.Phase)}
	out = add(out, "index", p.Annotations[batchv1.JobCompletionIndexAnnotation])
	out = add(out, "node", p.Spec.NodeName)
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == corev1.PodReady || c.Type == corev1.DisruptionTarget) {
			out = append(out, string(c.Type)+"=yes")
		}
	}
	var exits []string
	for _, c := range append(p.Status.InitContainerStatuses[:len(p.Status.InitContainerStatuses):len(p.Status.InitContainerStatuses)], p.Status.ContainerStatuses...) {
		if c.RestartCount > 0 {
			out = append(out, fmt.Sprintf("restarts of %s=%d", c.Name, c.RestartCount))
		}
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			exits = append(exits, fmt.Sprintf("%s %d", c.Name, t.ExitCode))
		}
	}
	return add(out, "exits", strings.Join(exits, " and "))
}

func cronFacts(c *batchv1.CronJob) []string {
	out := []string{"schedule=" + c.Spec.Schedule, "concurrency=" + string(c.Spec.ConcurrencyPolicy)}
	out = add(out, "suspend", valueOr(c.Spec.Suspend, false))
	for _, key := range slices.Sorted(maps.Keys(c.Annotations)) {
		out = append(out, key+"="+c.Annotations[key])
	}
	var active []string
	for _, ref := range c.Status.Active {
		active = append(active, ref.Name)
	}
	out = add(out, "active", strings.Join(active, " and "))
	if t := c.Status.LastScheduleTime; t != nil {
		out = append(out, "lastSchedule="+t.UTC().Format("2006-01-02T15:04:05Z"))
	}
	if t := c.Status.LastSuccessfulTime; t != nil {
		out = append(out, "lastSuccess="+t.UTC().Format("2006-01-02T15:04:05Z"))
	}
	return out
}
