package world

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// String is the plan as text.
func (p *plan) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "world %d: begins %s, trouble ends after %s, ends %s later\n", p.seed, p.begins.Format(time.RFC3339Nano), p.calm, p.settle)
	fmt.Fprintf(&out, "executors: %s\n", p.executor)
	fmt.Fprintf(&out, "network: requests take %s, events %s%s%s\n", p.network.request, p.network.event,
		when(p.network.noWatchList, ", no lists by watch"), when(p.network.longWatches, ", watches last a day"))
	for _, j := range p.jobs {
		fmt.Fprintf(&out, "Job %s/%s%s %v: %s\n%s", j.namespace, j.name, when(len(j.finalizers) > 0, " (with a finalizer)"), j.annotations, describeSpec(&j.spec), describeFates(j.fates))
	}
	for _, c := range p.crons {
		fmt.Fprintf(&out, "CronJob %s/%s %v: %s\n%s", c.namespace, c.name, c.annotations, describeCron(&c.spec), describeFates(c.fates))
	}
	for _, s := range p.steps {
		fmt.Fprintf(&out, "step %s\n", s.full())
	}
	for _, f := range p.faults {
		fmt.Fprintf(&out, "fault %s\n", f)
	}
	return out.String()
}

func when(yes bool, text string) string {
	if yes {
		return text
	}
	return ""
}

func (s span) String() string { return fmt.Sprintf("%s to %s", s.least, s.most) }

func (e executorPlan) String() string {
	out := []string{fmt.Sprintf("%d", e.replicas), map[bool]string{true: "in place of the built-in controllers", false: "beside them"}[e.replace]}
	say := func(yes bool, format string, args ...any) {
		if yes {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	say(e.upstream, "which are Kubernetes' own")
	say(e.maxChanges > 0, "%d changes of pods a decision", e.maxChanges)
	say(e.maxUncounted > 0, "%d uncounted pods a status", e.maxUncounted)
	say(e.maxUnseen > 0, "%d unseen pods of a Job", e.maxUnseen)
	say(e.warmStandby, "the standby's pod cache is filled")
	say(e.noticing, "they look for a second controller%s", when(e.standDown, ", and stand down"))
	say(e.together, "active at once")
	say(e.maxRows > 0, "%d finished pods a request", e.maxRows)
	say(e.leastRows > 0, "%d in any case", e.leastRows)
	say(e.largeRequest > 0, "%d bytes are large", e.largeRequest)
	say(e.workers > 0, "%d decisions at once", e.workers)
	say(e.maxWrites > 0, "%d writes at once", e.maxWrites)
	say(e.qps > 0, "%g requests a second", e.qps)
	say(e.clusterRuns > 0, "group %s is one of the cluster with %d runs at once", cronGroup, e.clusterRuns)
	say(e.keepStartTime, "start times are kept on suspension")
	return strings.Join(append(out, "zone "+e.zone), ", ")
}

// describeSpec is a spec as short JSON.
func describeSpec(spec *batchv1.JobSpec) string {
	short := spec.DeepCopy()
	short.Template = corev1.PodTemplateSpec{}
	fields := map[string]any{}
	if body, err := json.Marshal(short); err == nil {
		_ = json.Unmarshal(body, &fields) // It was just written.
	}
	delete(fields, "template")
	body, err := json.Marshal(fields)
	if err != nil {
		return err.Error()
	}
	pod := &spec.Template.Spec
	return fmt.Sprintf("%s restart %s, containers %s", body, pod.RestartPolicy, names(pod))
}

func names(pod *corev1.PodSpec) string {
	var out []string
	for _, c := range pod.InitContainers {
		out = append(out, c.Name)
	}
	for _, c := range pod.Containers {
		out = append(out, c.Name)
	}
	return strings.Join(out, "+")
}

func describeCron(spec *batchv1.CronJobSpec) string {
	short := spec.DeepCopy()
	short.JobTemplate = batchv1.JobTemplateSpec{}
	body, err := json.Marshal(short)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s of Jobs %s", body, describeSpec(&spec.JobTemplate.Spec))
}

func describeFates(fates []fate) string {
	var out strings.Builder
	for i, f := range fates {
		fmt.Fprintf(&out, "  pod %d %s\n", i+1, f)
	}
	return out.String()
}

func (f fate) String() string {
	text := fmt.Sprintf("starts after %s, is ready %s later", f.start, f.ready)
	if f.problem != "" {
		text = fmt.Sprintf("is kept by %s after %s, ", f.problem, f.shows) + text
	}
	if f.restarts > 0 {
		text += fmt.Sprintf(", restarts %d times", f.restarts)
	}
	text += fmt.Sprintf(", %s", f.end)
	if f.end != restless {
		text += fmt.Sprintf(" after %s", f.run)
	}
	if f.end == endsBadly {
		text += fmt.Sprintf(" with exit code %d (container %d)", f.exit, f.container)
	}
	if f.alone {
		text += ", and its node stays Ready"
		if f.unready != forEver {
			text += fmt.Sprintf(" for %s", f.unready)
		}
	}
	if f.end == returns {
		text += fmt.Sprintf(", and its node is back %s later", f.away)
	}
	return text + fmt.Sprintf("; deleted, it lingers %s%s", f.linger, when(f.obeys, " and succeeds"))
}

// String is the step without its time.
func (s *step) String() string {
	text := s.verb
	if s.on != "" {
		text += " " + s.on
	}
	if s.text != "" {
		text += " " + s.text
	}
	if s.n != 0 || strings.HasPrefix(s.verb, "set ") && s.text == "" && s.d == 0 {
		text += fmt.Sprintf(" (%d)", s.n)
	}
	if s.d != 0 {
		text += fmt.Sprintf(" for %s", s.d)
	}
	return text
}

func (s *step) full() string {
	at := "at " + s.at.String()
	switch {
	case s.ends:
		at = fmt.Sprintf("%s after an executor writes the Job's end", s.at)
	case s.expires:
		at = fmt.Sprintf("%s after an executor reads it at the end of its time to live", s.at)
	case s.write > 0 && s.before:
		at = fmt.Sprintf("%s after request %d of executors is sent", s.at, s.write)
	case s.write > 0:
		at = fmt.Sprintf("%s after write %d of executors", s.at, s.write)
	}
	return fmt.Sprintf("%s: %s: %s", at, s.who, s)
}

func (f *fault) String() string {
	text := fmt.Sprintf("%s from %s to %s, %d%%", f.kind, f.from, f.to, f.percent)
	if f.namespace != "" {
		text += " in " + f.namespace
	}
	if f.verb != "" || f.resource != "" {
		text += fmt.Sprintf(" of %s %s", f.verb, f.resource)
	}
	if f.alters != "" {
		text += fmt.Sprintf(": %s%s", f.alters, when(f.unanswered, ", unanswered"))
	}
	return text + fmt.Sprintf(", delays %s", f.delay)
}
