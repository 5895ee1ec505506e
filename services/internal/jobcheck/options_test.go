package jobcheck_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/internal/jobcheck"
	"jobpolicy.dev/services/internal/manifest"
)

// said are the findings on an object by one check.
func said(o *manifest.Object, check string) string {
	var texts []string
	for _, f := range jobcheck.Check(o) {
		if f.Check == check {
			texts = append(texts, string(f.Severity)+": "+f.Path+": "+f.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// The findings on a Job are about what its options make of it.
func TestChecksReadTheOptions(t *testing.T) {
	twoRules := &batchv1.PodFailurePolicy{Rules: slices.Repeat(ignoring(true).Rules, 2)}
	cases := map[string]struct {
		check, options string
		change         func(*batchv1.JobSpec)
		// want is a part of what is found. Empty: nothing is found.
		want string
	}{
		"a name for each rule":    {"policy", "{job: {failureRuleNames: [a, b]}}", func(s *batchv1.JobSpec) { s.PodFailurePolicy = twoRules }, ""},
		"fewer names than rules":  {"policy", "{job: {failureRuleNames: [a]}}", func(s *batchv1.JobSpec) { s.PodFailurePolicy = twoRules }, "error: metadata.annotations: jobpolicy.dev/policy: job.failureRuleNames: expected as many names as spec.podFailurePolicy has rules (2)"},
		"delays and a deadline":   {"retry-delays", "{}", func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](300) }, "take 10m30s"},
		"short delays":            {"retry-delays", "{job: {retryDelay: {delaysSeconds: [1]}}}", func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](300) }, ""},
		"the last delay repeats":  {"retry-delays", "{job: {retryDelay: {delaysSeconds: [1, 100]}}}", func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](300) }, "take 8m21s"},
		"another delay of quotas": {"retry-delays", "{job: {retryDelay: {quotaMaxSeconds: 1}}}", func(s *batchv1.JobSpec) { s.BackoffLimit = ptr.To[int32](20) }, "double from 10s to 10m"},
		"another first delay":     {"retry-delays", "{job: {retryDelay: {initialSeconds: 1}}}", func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](60) }, "take 1m3s"},
		"a longest delay":         {"retry-delays", "{job: {retryDelay: {maxSeconds: 5}}}", func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](29) }, "take 30s"},
		"a first delay above 10m": {"retry-delays", "{job: {retryDelay: {initialSeconds: 1200}}}", func(*batchv1.JobSpec) {}, "backoffLimit: is 6: the delays between retries are those of job.retryDelay, so a Job that always fails takes at least 2h"},
		"another factor":          {"retry-delays", "{job: {retryDelay: {factor: 1}}}", func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](59) }, "take 1m,"},
		"a pod that stays": {"restarts-count", "{job: {whenJobFails: EndPods}}", func(s *batchv1.JobSpec) {
			s.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		}, "when it is exceeded the pod is ended, and stays with its log (option job.whenJobFails)"},
		"more of nothing":         {"next-try", "{job: {nextTryResources: {resource: Memory, max: 1Gi}}}", func(*batchv1.JobSpec) {}, "warning: spec.template.spec.containers: none has a request or a limit of memory"},
		"more memory":             {"next-try", "{job: {nextTryResources: {resource: Memory, max: 1Gi}}}", giveMemory, ""},
		"more CPU than none":      {"next-try", "{job: {nextTryResources: {resource: Cpu, max: '2', onExitCodes: [1]}}}", giveMemory, "none has a request or a limit of cpu"},
		"no more memory":          {"next-try", "{job: {nextTryResources: {resource: Memory, max: 64Mi}}}", giveMemory, "warning: spec.template.spec.containers: job.nextTryResources.max (64Mi) is not above what the template asks for, so it raises nothing"},
		"more memory for nobody":  {"next-try", "{job: {nextTryResources: {container: log, resource: Memory, max: 1Gi}}}", giveMemory, "none is called log"},
		"more memory for the pod": {"next-try", "{job: {nextTryResources: {resource: Memory, max: 1Gi}}}", givePodMemory, ""},
		"more memory for the pod of a container": {"next-try", "{job: {nextTryResources: {container: main, resource: Memory, max: 1Gi}}}", func(s *batchv1.JobSpec) {
			givePodMemory(s)
			s.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
		}, ""},
		"a pod with the most memory": {"next-try", "{job: {nextTryResources: {resource: Memory, max: 64Mi}}}", givePodMemory, "job.nextTryResources.max (64Mi) is not above what the template asks for"},
		"more memory in the same pod": {"next-try", "{job: {nextTryResources: {resource: Memory, max: 1Gi}}}", func(s *batchv1.JobSpec) {
			giveMemory(s)
			s.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		}, "warning: spec.template.spec.restartPolicy: OnFailure: containers are restarted in their pod"},
		"no deadline":                      {"never-starts", "{}", func(*batchv1.JobSpec) {}, "keeps the Job open for ever"},
		"limits of pods that never start":  {"never-starts", "{job: {neverStarted: [{problem: Image, afterSeconds: 900}, {problem: Configuration, afterSeconds: 900}, {problem: Unschedulable, afterSeconds: 900}]}}", func(*batchv1.JobSpec) {}, ""},
		"a limit of some that never start": {"never-starts", "{job: {neverStarted: [{problem: Image, afterSeconds: 900}]}}", func(*batchv1.JobSpec) {}, "keeps the Job open for ever; job.neverStarted does not name Configuration, Unschedulable"},
		"a deadline to start":              {"never-starts", "{job: {startDeadlineSeconds: 900}}", func(*batchv1.JobSpec) {}, ""},
		"one time to live":                 {"ttl", "{}", func(s *batchv1.JobSpec) { s.TTLSecondsAfterFinished = ptr.To[int32](600) }, "set one time each"},
		"none for Complete Jobs":           {"ttl", "{job: {ttlSecondsAfterComplete: 0}}", func(s *batchv1.JobSpec) { s.TTLSecondsAfterFinished = ptr.To[int32](600) }, ""},
		"none for Failed Jobs":             {"ttl", "{job: {ttlSecondsAfterFailed: 0}}", func(s *batchv1.JobSpec) { s.TTLSecondsAfterFinished = ptr.To[int32](600) }, ""},
		"a JobPolicy that nobody has":      {"policy", "gone", func(*batchv1.JobSpec) {}, "the Job does not start before the cluster has it"},
		"an option that yields":            {"ttl", "{job: {defaultTtlSecondsAfterFinished: 60}}", func(s *batchv1.JobSpec) { s.TTLSecondsAfterFinished = ptr.To[int32](600) }, "set one time each"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			j := job("a", func(j *batchv1.Job) {
				j.Annotations = map[string]string{wire.Policy: tc.options}
				j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
				tc.change(&j.Spec)
			})
			got := said(&manifest.Object{Kind: "Job", Job: &j}, tc.check)
			if !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}

func giveMemory(s *batchv1.JobSpec) {
	s.Template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
	}}}
}

func givePodMemory(s *batchv1.JobSpec) {
	s.Template.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}
}

// What is said of runs that do not start on time is about so many as the options let start.
func TestChecksReadHowManyMissedRunsStart(t *testing.T) {
	suspended := func(c *batchv1.CronJob) { c.Spec.Suspend = ptr.To(true) }
	forbid := func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent }
	cases := map[string]struct {
		check, options string
		change         func(*batchv1.CronJob)
		want           string // As in TestChecksReadTheOptions.
	}{
		"the latest":                 {"missed-runs", "{}", suspended, "on resume the latest missed run starts at once, however late"},
		"three":                      {"missed-runs", "{cronJob: {maxMissedRuns: 3}}", suspended, "on resume the latest 3 missed runs start in order (cronJob.maxMissedRuns) at once, however late"},
		"none":                       {"missed-runs", "{cronJob: {maxMissedRuns: 0}}", suspended, ""},
		"the latest that waited":     {"about-once", "{}", forbid, "at most the latest starts afterwards. In"},
		"the latest 24 that waited":  {"about-once", "{cronJob: {maxMissedRuns: 24}}", forbid, "at most the latest 24 start afterwards (cronJob.maxMissedRuns). In"},
		"one that waited, no others": {"about-once", "{cronJob: {maxMissedRuns: 0}}", forbid, "at most the latest starts afterwards, and none that was missed for another reason (cronJob.maxMissedRuns is 0). In"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := cron("c", func(c *batchv1.CronJob) { c.Annotations = map[string]string{wire.Policy: tc.options} })
			tc.change(&c)
			got := said(&manifest.Object{Kind: "CronJob", CronJob: &c}, tc.check)
			if !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}

// A manifest with the annotation that only the executor writes is the copy of another object.
func TestTheLastValidPolicyIsNotForManifests(t *testing.T) {
	const text = ": jobpolicy.dev/last-valid-policy: the executor writes it"
	copied := map[string]string{wire.LastValidPolicy: `{"job":{}}`}
	c := cron("c", func(c *batchv1.CronJob) { c.Annotations = copied })
	if got := said(&manifest.Object{Kind: "CronJob", CronJob: &c}, "policy"); !strings.HasPrefix(got, "note: metadata.annotations"+text) {
		t.Errorf("of a CronJob: found %q", got)
	}
	c.Spec.JobTemplate.Annotations, c.Annotations = copied, nil
	if got := said(&manifest.Object{Kind: "CronJob", CronJob: &c}, "policy"); !strings.HasPrefix(got, "note: spec.jobTemplate.metadata.annotations"+text) {
		t.Errorf("of its Jobs: found %q", got)
	}
	job := &batchv1.Job{ObjectMeta: c.Spec.JobTemplate.ObjectMeta, Spec: c.Spec.JobTemplate.Spec}
	if got := said(&manifest.Object{Kind: "Job", Job: job}, "policy"); !strings.HasPrefix(got, "note: metadata.annotations"+text) || strings.Contains(got, "\n") {
		t.Errorf("of a Job: found %q", got)
	}
}

// The runs of a CronJob start although its policy is missing; Jobs with a policy of the template wait for theirs.
func TestACronJobWithoutItsPolicy(t *testing.T) {
	c := cron("c", func(c *batchv1.CronJob) { c.Annotations = map[string]string{wire.Policy: "gone"} })
	const own = `note: metadata.annotations: jobpolicy.dev/policy names the JobPolicy "gone", which no file has, or only with mistakes: a CronJob that the executor has not run with valid options starts no run before the cluster has it`
	if got := said(&manifest.Object{Kind: "CronJob", CronJob: &c}, "policy"); got != own {
		t.Errorf("found %q, want %q", got, own)
	}
	c.Spec.JobTemplate.Annotations, c.Annotations = c.Annotations, nil
	const runs = `note: spec.jobTemplate.metadata.annotations: jobpolicy.dev/policy names the JobPolicy "gone", which no file has, or only with mistakes: the Job does not start before the cluster has it`
	if got := said(&manifest.Object{Kind: "CronJob", CronJob: &c}, "policy"); got != runs {
		t.Errorf("found %q, want %q", got, runs)
	}
}
