package world

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/test/kit/ledger"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

const classifiedCondition batchv1.JobConditionType = jobend.ConditionType

// judgeClassified: of a Job that asks for it, the status that announces a failure says what kind of
// failure it was, and says of the pod what the pod says. Of any other Job no status does.
func (j *judge) judgeClassified(w apiserver.Write, r *jobRecord, next *batchv1.Job) {
	before, c := condition(r.job, classifiedCondition), condition(next, classifiedCondition)
	announces := ledger.IsTrue(next, batchv1.JobFailureTarget) && !ledger.IsTrue(r.job, batchv1.JobFailureTarget)
	policy, _ := wire.PolicySpec(r.job.Annotations)
	asked := policy.GetJob().GetEndCondition()
	switch {
	case before != nil && (c == nil || c.Reason != before.Reason || c.Message != before.Message):
		j.breach("class", r.key, r.uid, "%s changed how the Job failed: %s", w.By, before.Message)
	case before != nil:
	case (c != nil) != (announces && asked):
		j.breach("class", r.key, r.uid, "%s wrote a status with the condition (%t); it announces a failure (%t), and the Job asks for the condition (%t)", w.By, c != nil, announces, asked)
	case c != nil:
		end, ok := jobend.Read(c.Reason, c.Message)
		if !ok {
			j.breach("class", r.key, r.uid, "%s wrote a condition that cannot be read: %s", w.By, c.Message)
			return
		}
		if wrong := cmp.Or(j.misclassified(w, r, next, end), j.wrongFailures(w, r, end)); wrong != "" {
			j.breach("class", r.key, r.uid, "%s says that it is %s: %s; but %s", w.By, c.Reason, c.Message, wrong)
		}
	}
}

// misclassified says what is wrong about how a Job failed; empty if nothing.
func (j *judge) misclassified(w apiserver.Write, r *jobRecord, next *batchv1.Job, end *jobpolicyv1.JobEnd) string {
	class, reason := jobend.ClassName(end.GetClass()), condition(next, batchv1.JobFailureTarget).Reason
	if reason == batchv1.JobReasonDeadlineExceeded || reason == "StartDeadlineExceeded" {
		want := map[string]string{batchv1.JobReasonDeadlineExceeded: "Deadline", "StartDeadlineExceeded": "NeverStarted"}[reason]
		if class != want || end.GetPodName() != "" {
			return sprint("no pod ended the Job, and its class is %s", want)
		}
		return ""
	}
	if end.GetPodName() == "" {
		return j.unnamed(w, r, reason)
	}
	p := j.podNamed(r, end.GetPodName())
	if p == nil {
		return "the Job has had no such pod"
	}
	if p.restarts > 0 && (!p.failed() || !j.mustKnowEnd(r, p, w.By)) && reason == batchv1.JobReasonBackoffLimitExceeded {
		return "" // Its restarts reached the limit; what its containers said before is gone from the cluster.
	}
	starts := reason == "PodNeverStarted" || reason == batchv1.JobReasonFailedIndexes || reason == batchv1.JobReasonMaxFailedIndexesExceeded
	if at, _, asked := r.startLimit(p); class == "NeverStarted" && starts && asked && !at.After(j.now.Add(j.askew())) {
		return "" // It may have started since.
	}
	if classes := j.classesOf(r, p); !slices.Contains(classes, class) {
		return sprint("the pod's own status says %v", classes)
	}
	if p.flipped || !p.strayAt.IsZero() {
		return ""
	}
	switch ix := podIndex(p.pod); {
	case reason == batchv1.JobReasonPodFailurePolicy && !p.named(r, end):
		return "no such rule matches the pod"
	case (reason == batchv1.JobReasonFailedIndexes || reason == batchv1.JobReasonMaxFailedIndexesExceeded) && !failedIndexes(&next.Status).Has(ix):
		return sprint("its index %d has not failed", ix)
	case reason == batchv1.JobReasonBackoffLimitExceeded:
		return j.laterFailure(w, r, p)
	}
	return ""
}

// podNamed is the pod of the Job with a name, which may be gone; nil if there is none.
func (j *judge) podNamed(r *jobRecord, name string) *podRecord {
	for _, uid := range sortedUIDs(j.pods) {
		if p := j.pods[uid]; p.key.Name == name && p.key.Namespace == r.key.Namespace && (p.job == r || p.former == r) {
			return p
		}
	}
	return nil
}

// unnamed: a pod that every view shows, and that failed in a way that counts, must be named. Of
// restarts nobody may know the container.
func (j *judge) unnamed(w apiserver.Write, r *jobRecord, reason string) string {
	if reason == batchv1.JobReasonBackoffLimitExceeded && r.job.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
		return ""
	}
	for _, p := range r.ends {
		if j.surelySeen(w, r, p) && p.failed() && r.fails(p) && (reason == batchv1.JobReasonBackoffLimitExceeded || reason == batchv1.JobReasonPodFailurePolicy) {
			return sprint("pod %s has failed", p.key.Name)
		}
	}
	return ""
}

// surelySeen reports whether the writer must know the end of a pod, and there is only one.
func (j *judge) surelySeen(w apiserver.Write, r *jobRecord, p *podRecord) bool {
	return j.mustKnowEnd(r, p, w.By) && !j.lost(r, p, w.By) && !p.flipped && p.excuse == "" && p.revivals == 0 &&
		p.strayAt.IsZero() && r.selects(p.pod) && inRange(r.job, p.pod) && p.job == r
}

// laterFailure: of the pods that count, the one that finished last is named.
func (j *judge) laterFailure(w apiserver.Write, r *jobRecord, p *podRecord) string {
	if p.first == nil || !p.deletedAt.IsZero() || j.askew() != 0 {
		return ""
	}
	for _, q := range r.ends {
		if q != p && q.first != nil && q.deletedAt.IsZero() && q.failed() && r.fails(q) && j.surelySeen(w, r, q) && q.finished.After(p.saidToEnd) {
			return sprint("pod %s failed later, at %s", q.key.Name, q.finished)
		}
	}
	return ""
}

// named reports whether the rule of the pod failure policy that the end names matches the pod.
func (p *podRecord) named(r *jobRecord, end *jobpolicyv1.JobEnd) bool {
	rule := int(end.GetPolicyRuleIndex())
	if end.PolicyRuleIndex == nil || rule >= len(r.job.Spec.PodFailurePolicy.Rules) {
		return false
	}
	policy, _ := wire.PolicySpec(r.job.Annotations)
	if names := policy.GetJob().GetFailureRuleNames(); len(names) > 0 && names[rule] != end.GetPolicyRuleName() {
		return false
	}
	alone := r.job.DeepCopy()
	alone.Spec.PodFailurePolicy.Rules = alone.Spec.PodFailurePolicy.Rules[rule : rule+1]
	return policyAction(alone, p.version()) == batchv1.PodFailurePolicyActionFailJob || policyAction(alone, p.pod) == batchv1.PodFailurePolicyActionFailJob
}

// classesOf are the classes of a pod by the versions of it that an executor may have seen.
func (j *judge) classesOf(r *jobRecord, p *podRecord) (classes []string) {
	for _, version := range []*corev1.Pod{p.first, p.version(), p.pod, p.running} {
		if version != nil {
			classes = append(classes, classOf(r.job, version))
		}
	}
	return classes
}

// classOf is the class of a pod that has failed, or is being deleted.
func classOf(job *batchv1.Job, pod *corev1.Pod) string {
	statuses := slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses)
	failed := slices.DeleteFunc(statuses, func(s corev1.ContainerStatus) bool {
		return s.State.Terminated == nil || s.State.Terminated.ExitCode == 0
	})
	killed := slices.ContainsFunc(failed, func(s corev1.ContainerStatus) bool { return s.State.Terminated.Reason == "OOMKilled" })
	action := policyAction(job, pod)
	switch {
	case pod.Status.Reason == "DeadlineExceeded":
		return "Deadline"
	case len(optionsOf(job).NeverStarted) > 0 && pod.Status.Reason == "" && !disrupted(pod) && !anyRan(pod):
		return "NeverStarted"
	case killed:
		return "OutOfMemory"
	case disrupted(pod), deletedFirst(pod), pod.Status.Reason != "" && len(failed) == 0:
		return "Infrastructure"
	case action == batchv1.PodFailurePolicyActionFailJob, action == batchv1.PodFailurePolicyActionFailIndex:
		return "Policy"
	case len(failed) > 0:
		return "Application"
	}
	return "Unknown"
}

// deletedFirst reports whether somebody deleted the pod before it ended.
func deletedFirst(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	asked := pod.DeletionTimestamp.Unix() - valueOr(pod.DeletionGracePeriodSeconds, 0)
	latest := int64(0)
	for _, s := range pod.Status.ContainerStatuses {
		if end := s.State.Terminated; end != nil && !end.FinishedAt.IsZero() {
			latest = max(latest, end.FinishedAt.Unix())
		}
	}
	return !ledger.Ended(pod) || latest >= asked
}
