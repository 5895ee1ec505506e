package jobcheck

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// The API server's defaults, and the limits of the Job controller.
const (
	defaultBackoffLimit = 6
	maxIndexedPods      = 100_000
	shortTTL            = 60
)

func (s *subject) indexed() bool {
	return ptr.Deref(s.spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

func (s *subject) backoffLimit() int32 { return ptr.Deref(s.spec.BackoffLimit, defaultBackoffLimit) }

func (s *subject) onFailure() bool {
	return s.spec.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
}

func size(s *subject) {
	parallelism := ptr.Deref(s.spec.Parallelism, 1)
	switch {
	case parallelism == 0:
		s.find(Warning, "parallelism", "is 0: the Job runs no pods until it is raised")
	case s.spec.Completions != nil && *s.spec.Completions == 0:
		s.find(Warning, "completions", "is 0: the Job is complete at once, without a pod")
	case s.spec.Completions == nil && !s.indexed() && parallelism > 1:
		s.find(Note, "parallelism", fmt.Sprintf(
			"is %d, and completions is not set (a work queue): once one pod has succeeded, no pod starts any more, and the Job is Complete when the others have ended. If %d pods have to succeed, set completions to %d", parallelism, parallelism, parallelism))
	case s.spec.Completions != nil && parallelism > *s.spec.Completions:
		s.find(Note, "parallelism", fmt.Sprintf("is %d, but no more than completions (%d) pods run at once", parallelism, *s.spec.Completions))
	}
	if s.indexed() && parallelism > maxIndexedPods {
		s.find(Error, "parallelism", fmt.Sprintf("is %d; an Indexed Job may have %d", parallelism, maxIndexedPods))
	}
}

func restartsCount(s *subject) {
	if !s.onFailure() {
		return
	}
	fate := "deleted, and its log with it. Never keeps the failed pods"
	if s.options.GetJob().GetWhenJobFails() == jobpolicyv1.WhenJobFails_WHEN_JOB_FAILS_END_PODS {
		fate = "ended, and stays with its log (option job.whenJobFails)"
	}
	s.find(Note, "template.spec.restartPolicy", fmt.Sprintf(
		"OnFailure: restarts of containers count toward backoffLimit (%d); when it is exceeded the pod is %s", s.backoffLimit(), fate))
}

func backoffAndParallelism(s *subject) {
	parallelism, limit := ptr.Deref(s.spec.Parallelism, 1), s.backoffLimit()
	if parallelism > 1 && limit < parallelism && s.spec.BackoffLimitPerIndex == nil {
		s.find(Warning, "backoffLimit", fmt.Sprintf(
			"is %d, and %d pods run at once: if all fail for one reason, such as a service that is away, the Job fails without a retry", limit, parallelism))
		return
	}
	if n := ptr.Deref(s.spec.Completions, 1); n > limit && limit > 0 && s.spec.BackoffLimitPerIndex == nil {
		own := ""
		if s.indexed() {
			own = "; backoffLimitPerIndex gives each index retries of its own"
		}
		s.find(Note, "backoffLimit", fmt.Sprintf("is %d for all %d completions together: one failure more than that ends the Job, whichever pods fail, also with successes between%s", limit, n, own))
	}
}

// disruptions looks at Jobs that a single failure ends.
func disruptions(s *subject) {
	if s.backoffLimit() != 0 || s.spec.BackoffLimitPerIndex != nil || ignores(&batchv1.Job{Spec: *s.spec}, true) {
		return
	}
	never := ""
	if s.onFailure() {
		never = ", with restartPolicy Never"
	}
	s.find(Note, "backoffLimit", fmt.Sprintf(
		"is 0: a pod that is evicted or preempted, as when its node is drained or removed, counts as failed, and the Job fails. A rule of podFailurePolicy with the action Ignore for the condition DisruptionTarget leaves that out%s", never))
}

// The defaults of the delay before a retry.
const (
	firstDelay   = 10 * time.Second
	longestDelay = 10 * time.Minute
)

// retryDelays checks Jobs with one pod at a time, because parallel pods that fail share
// delays.
func retryDelays(s *subject) {
	if s.onFailure() || s.spec.BackoffLimitPerIndex != nil || ptr.Deref(s.spec.Parallelism, 1) != 1 {
		return
	}
	own, retries, delays := s.options.GetJob().GetRetryDelay(), s.backoffLimit(), s.delays()
	between := "double from 10s to 10m"
	if options.DelaysRetries(own) {
		between = "are those of job.retryDelay"
	}
	switch deadline := s.spec.ActiveDeadlineSeconds; {
	case deadline != nil && *deadline < int64(delays/time.Second):
		s.find(Note, "activeDeadlineSeconds", fmt.Sprintf(
			"is %d: the delays before %d retries (backoffLimit) take %s, so the deadline ends a Job that always fails before the last of them", *deadline, retries, simulate.Clock(delays)))
	case deadline == nil && delays >= time.Hour:
		s.find(Note, "backoffLimit", fmt.Sprintf(
			"is %d: the delays between retries %s, so a Job that always fails takes at least %s to say so", retries, between, simulate.Clock(delays)))
	}
}

// delays are the delays before all retries of a Job with one pod at a time.
func (s *subject) delays() (sum time.Duration) {
	for n := range min(s.backoffLimit(), maxIndexedPods) {
		sum += delayAfter(s.options.GetJob().GetRetryDelay(), int(n))
	}
	return sum
}

// delayAfter is the shortest delay before retry n, from 0: without the jitter. own is nil if the Job has
// no delays of its own.
func delayAfter(own *jobpolicyv1.RetryDelay, n int) time.Duration {
	if list := own.GetDelaysSeconds(); len(list) > 0 {
		return time.Duration(list[min(n, len(list)-1)]) * time.Second
	}
	first, longest, factor := firstDelay, longestDelay, 2.0
	if own != nil && own.Factor != nil {
		factor = own.GetFactor()
	}
	if own != nil && own.InitialSeconds != nil {
		first = time.Duration(own.GetInitialSeconds()) * time.Second
		longest = max(longest, first)
	}
	if own != nil && own.MaxSeconds != nil {
		longest = time.Duration(own.GetMaxSeconds()) * time.Second
	}
	return time.Duration(min(float64(first)*math.Pow(factor, float64(n)), float64(longest)))
}

func endlessIgnore(s *subject) {
	if s.spec.PodFailurePolicy == nil || s.spec.ActiveDeadlineSeconds != nil {
		return
	}
	for i, rule := range s.spec.PodFailurePolicy.Rules {
		if rule.Action == batchv1.PodFailurePolicyActionIgnore && rule.OnExitCodes != nil {
			s.find(Warning, fmt.Sprintf("podFailurePolicy.rules[%d].action", i),
				"Ignore: such a failure never counts, so a pod that always ends so is retried for ever; activeDeadlineSeconds would end it")
		}
	}
}

func ignoredDelays(s *subject) {
	if s.spec.PodFailurePolicy == nil {
		return
	}
	for i, rule := range s.spec.PodFailurePolicy.Rules {
		if rule.Action == batchv1.PodFailurePolicyActionIgnore {
			s.find(Note, fmt.Sprintf("podFailurePolicy.rules[%d].action", i),
				"Ignore: such a failure does not count toward backoffLimit, but it delays the next try by 10s, and up to 10m when there are several in a row; under jobpolicy a disruption (DisruptionTarget) does not")
			return
		}
	}
}

func neverStarts(s *subject) {
	limits := s.options.GetJob().GetNeverStarted()
	missing := notNamed(limits)
	if s.spec.ActiveDeadlineSeconds != nil || s.options.GetJob().GetStartDeadlineSeconds() != 0 || len(missing) == 0 || s.cron != nil {
		return
	}
	text := "is not set: a pod that never starts (image, missing config map, no node) is active, not failed, and keeps the Job open for ever"
	if len(limits) > 0 {
		text += "; job.neverStarted does not name " + strings.Join(missing, ", ")
	}
	s.find(Note, "activeDeadlineSeconds", text)
}

// notNamed are the usual problems of pods that never start for which there is no limit.
func notNamed(limits []*jobpolicyv1.NeverStarted) []string {
	var names []string
	for _, problem := range []jobpolicyv1.PodStartProblem{
		jobpolicyv1.PodStartProblem_POD_START_PROBLEM_IMAGE,
		jobpolicyv1.PodStartProblem_POD_START_PROBLEM_CONFIGURATION,
		jobpolicyv1.PodStartProblem_POD_START_PROBLEM_UNSCHEDULABLE,
	} {
		if !slices.ContainsFunc(limits, func(n *jobpolicyv1.NeverStarted) bool { return n.GetProblem() == problem }) {
			enum := problem.Descriptor()
			names = append(names, options.EnumName(enum, enum.Values().ByNumber(problem.Number())))
		}
	}
	return names
}

func podDeadline(s *subject) {
	own, job := s.spec.Template.Spec.ActiveDeadlineSeconds, s.spec.ActiveDeadlineSeconds
	switch {
	case own == nil:
	case job == nil:
		s.find(Warning, "template.spec.activeDeadlineSeconds", "ends each pod, and the next one starts; for a deadline of the Job set spec.activeDeadlineSeconds")
	case *own >= *job:
		s.find(Note, "template.spec.activeDeadlineSeconds", fmt.Sprintf("is %d, and ends no pod: the Job's deadline (%d) is over before", *own, *job))
	}
}

func deadlineAndSuspend(s *subject) {
	if ptr.Deref(s.spec.Suspend, false) && s.spec.ActiveDeadlineSeconds != nil {
		s.find(Note, "activeDeadlineSeconds", "counts from the last time the Job was resumed, not from its creation")
	}
}

func twoPods(s *subject) {
	if s.indexed() && s.spec.PodFailurePolicy == nil && ptr.Deref(s.spec.PodReplacementPolicy, batchv1.TerminatingOrFailed) == batchv1.TerminatingOrFailed {
		s.find(Note, "podReplacementPolicy", "is TerminatingOrFailed: while a pod is being deleted, a second one with its index may run already. Failed waits until the first has ended")
	}
}

// knownSidecars are containers that run until they are stopped.
var knownSidecars = []string{"istio-proxy", "linkerd-proxy", "envoy", "cloud-sql-proxy", "cloudsql-proxy", "vault-agent", "fluent-bit", "fluentd", "filebeat", "otel-collector", "datadog-agent"}

func sidecars(s *subject) {
	s.injected()
	list := s.spec.Template.Spec.Containers
	if len(list) < 2 {
		return
	}
	for i, c := range list {
		path := fmt.Sprintf("template.spec.containers[%d].name", i)
		if slices.ContainsFunc(knownSidecars, func(name string) bool { return strings.Contains(c.Name, name) || strings.Contains(c.Image, name) }) {
			s.find(Warning, path, fmt.Sprintf("%q runs until it is stopped, and keeps the Job open for ever: make it an init container with restartPolicy: Always", c.Name))
			return
		}
		if strings.HasSuffix(c.Name, "sidecar") {
			s.find(Warning, path, fmt.Sprintf("%q is a sidecar by its name: if it does not end by itself, it keeps the Job open for ever. As an init container with restartPolicy: Always it would not", c.Name))
			return
		}
	}
	s.find(Note, "template.spec.containers", fmt.Sprintf(
		"there are %d: the pod is done when every one has ended. One that only serves the others belongs to initContainers, with restartPolicy: Always", len(list)))
}

func ttl(s *subject) {
	seconds, own := s.spec.TTLSecondsAfterFinished, s.options.GetJob()
	switch {
	case seconds == nil:
	case *seconds < shortTTL:
		s.find(Warning, "ttlSecondsAfterFinished", fmt.Sprintf(
			"is %d: the Job, its pods and their logs are gone so soon after the end, also when it failed, and who waits for the end may miss it%s", *seconds, s.keptBy()))
	case s.keptBy() != "":
		s.find(Note, "ttlSecondsAfterFinished", fmt.Sprintf("is %d: so long after its end the Job is deleted, with its pods and their logs%s", *seconds, s.keptBy()))
	case own == nil || own.TtlSecondsAfterComplete == nil && own.TtlSecondsAfterFailed == nil:
		s.find(Note, "ttlSecondsAfterFinished", fmt.Sprintf(
			"is %d for a failed Job, too, and its pods and their logs are deleted with it; under jobpolicy the options job.ttlSecondsAfterComplete and job.ttlSecondsAfterFailed (annotation %s) set one time each", *seconds, wire.Policy))
	}
}
