package jobcheck_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/services/internal/jobcheck"
	"jobpolicy.dev/services/internal/manifest"
)

// A wide step's advice is a schedule that runs as often as was meant.
func TestTheIntervalInPlaceOfAWideStep(t *testing.T) {
	for schedule, want := range map[string]string{
		"*/90 * * * *":                  "*/90 does not mean every 90 minutes: a step begins again with each hour, so it selects one value; @every 90m is such an interval",
		"0 0 */9223372036854775807 * *": "so it selects one value",
		"0 */36 * * *":                  "@every 36h", "0 0 */40 * *": "@every 960h", "0 0 * * */8": "@every 192h", "0 0 1 */18 *": "every 18 months",
	} {
		text := strings.Join(about(schedule), "\n")
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s; expected %s", schedule, text, want)
		}
		if _, every, ok := strings.Cut(text, "; "); ok {
			every, _, _ = strings.Cut(every, " is such")
			for _, finding := range about(every) {
				t.Errorf("%s: the advice %s has a finding of its own: %s", schedule, every, finding)
			}
		} else if !strings.Contains(text, "months") && !strings.Contains(text, "9223372036854775807") {
			t.Errorf("%s: no advice: %s", schedule, text)
		}
	}
}

func retries(limit int32) func(*batchv1.JobSpec) {
	return func(s *batchv1.JobSpec) { s.BackoffLimit = &limit }
}

// What public reports of Jobs and CronJobs ran into is told before they run.
func TestMistakesOfReports(t *testing.T) {
	runs := func(line ...string) func(*batchv1.JobSpec) {
		return func(s *batchv1.JobSpec) {
			s.Template.Spec.Containers = []corev1.Container{{Name: "main", Command: line}}
		}
	}
	lives := func(seconds int32) func(*batchv1.JobSpec) {
		return func(s *batchv1.JobSpec) { s.TTLSecondsAfterFinished = &seconds }
	}
	cases := map[string]struct {
		check, annotation string
		change            func(*batchv1.JobSpec)
		// want is a part of what is found. Empty: nothing is found.
		want string
	}{
		"a line for a shell":  {"command", "", runs("exit 1"), `warning: spec.template.spec.containers[0].command: "exit 1" is taken as the name of a program, with its spaces: write each word as an element of its own, or put sh and -c before it`},
		"a line that goes on": {"command", "", runs("sh -c", "exit 1"), `warning: spec.template.spec.containers[0].command: "sh -c" is taken as the name of a program, with its spaces: write each word as an element of its own`},
		"a long line":         {"command", "", runs("echo " + strings.Repeat("ä", 60) + " end"), `the text that begins with "echo ` + strings.Repeat("ä", 37) + `" is taken`},
		"a line with arguments": {"command", "", func(s *batchv1.JobSpec) {
			s.Template.Spec.Containers = []corev1.Container{{Command: []string{"python main.py"}, Args: []string{"--fast"}}}
		}, `warning: spec.template.spec.containers[0].command: "python main.py" is taken as the name of a program, with its spaces: write each word as an element of its own`},
		"a shell and its line in one":    {"command", "", runs("/bin/sh -c date"), `"/bin/sh -c date"`},
		"a shell with a line":            {"command", "", runs("sh", "-c", "exit 1"), ""},
		"a program":                      {"command", "", runs("date"), ""},
		"a path with a space of Windows": {"command", "", runs(`C:\Program Files\app.exe`), ""},
		"no command":                     {"command", "", runs(), ""},
		"a work queue":                   {"size", "", func(s *batchv1.JobSpec) { s.Parallelism = ptr.To[int32](5) }, "note: spec.parallelism: is 5, and completions is not set (a work queue)"},
		"an Indexed Job without a size": {"size", "", func(s *batchv1.JobSpec) {
			s.Parallelism, s.CompletionMode = ptr.To[int32](5), ptr.To(batchv1.IndexedCompletion)
		}, ""},
		"one pod":                    {"size", "", func(s *batchv1.JobSpec) { s.Parallelism = ptr.To[int32](1) }, ""},
		"a short life":               {"ttl", "", lives(0), "who waits for the end may miss it"},
		"a short life of a hook":     {"ttl", "argocd.argoproj.io/hook", lives(0), "may miss it; Argo CD deletes a hook itself"},
		"a long life of a hook":      {"ttl", "helm.sh/hook", lives(600), "note: spec.ttlSecondsAfterFinished: is 600: so long after its end the Job is deleted, with its pods and their logs; Helm deletes a hook itself: as helm.sh/hook-delete-policy says, or else before it creates the next one"},
		"a long life of another Job": {"ttl", "argocd.argoproj.io/sync-wave", lives(600), "Argo CD then shows the Job as OutOfSync, and creates it again"},
		"one limit for all indexes": {"backoff-and-parallelism", "", func(s *batchv1.JobSpec) {
			s.Completions, s.CompletionMode = ptr.To[int32](100), ptr.To(batchv1.IndexedCompletion)
		}, "note: spec.backoffLimit: is 6 for all 100 completions together: one failure more than that ends the Job, whichever pods fail, also with successes between; backoffLimitPerIndex gives each index retries of its own"},
		"one limit for all pods": {"backoff-and-parallelism", "", func(s *batchv1.JobSpec) { s.Completions, s.BackoffLimit = ptr.To[int32](4), ptr.To[int32](2) }, "also with successes between"},
		"a limit per index": {"backoff-and-parallelism", "", func(s *batchv1.JobSpec) {
			s.Completions, s.CompletionMode, s.BackoffLimitPerIndex = ptr.To[int32](100), ptr.To(batchv1.IndexedCompletion), ptr.To[int32](1)
		}, ""},
		"a limit for few":               {"backoff-and-parallelism", "", func(s *batchv1.JobSpec) { s.Completions = ptr.To[int32](6) }, ""},
		"a node that is drained":        {"disruptions", "", retries(0), "note: spec.backoffLimit: is 0: a pod that is evicted or preempted, as when its node is drained or removed, counts as failed, and the Job fails."},
		"a node that is drained, again": {"disruptions", "", retries(1), ""},
		"a disruption that is ignored": {"disruptions", "", func(s *batchv1.JobSpec) {
			retries(0)(s)
			s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget}},
			}}}
		}, ""},
		"a sidecar by its name": {"sidecars", "", func(s *batchv1.JobSpec) {
			s.Template.Spec.Containers = []corev1.Container{{Name: "base"}, {Name: "airflow-xcom-sidecar"}}
		}, `warning: spec.template.spec.containers[1].name: "airflow-xcom-sidecar" is a sidecar by its name: if it does not end by itself`},
		"a container that prepares a sidecar": {"sidecars", "", func(s *batchv1.JobSpec) {
			s.Template.Spec.Containers = []corev1.Container{{Name: "base"}, {Name: "sidecar-config", Image: "example.com/sidecar-tools"}}
		}, "note: spec.template.spec.containers: there are 2"},
	}
	for name, tc := range cases {
		job := &batchv1.Job{}
		job.Name = "job"
		if tc.annotation != "" {
			job.Annotations = map[string]string{tc.annotation: "Sync"}
		}
		tc.change(&job.Spec)
		if got := said(&manifest.Object{Kind: "Job", Job: job}, tc.check); got != tc.want && (tc.want == "" || !strings.Contains(got, tc.want)) {
			t.Errorf("%s: %q, expected %q", name, got, tc.want)
		}
	}
}

func TestMistakesOfReportsOnCronJobs(t *testing.T) {
	const notes = "retries-and-next-run"
	cases := map[string]struct {
		check, schedule string
		policy          batchv1.ConcurrencyPolicy
		change          func(*batchv1.JobSpec)
		want            string
	}{
		"retries beside the next run":     {notes, "*/3 * * * *", "", nil, "note: spec.jobTemplate.spec.backoffLimit: is 6: the delays between retries take 10m30s, and runs are 3m apart: a run that fails still tries when the next ones start"},
		"retries that hold up":            {notes, "@every 3m", batchv1.ForbidConcurrent, nil, "keeps the next ones away"},
		"retries that are replaced":       {notes, "*/3 * * * *", batchv1.ReplaceConcurrent, nil, "never shows as failed"},
		"retries with time":               {notes, "0 * * * *", "", nil, ""},
		"the shortest time between runs":  {notes, "0,5 9 * * *", "", nil, "runs are 5m apart"},
		"a deadline before the next run":  {notes, "*/3 * * * *", "", func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](180) }, ""},
		"a deadline after it":             {notes, "*/3 * * * *", "", func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](181) }, "runs are 3m apart"},
		"no retries":                      {notes, "*/3 * * * *", "", func(s *batchv1.JobSpec) { s.BackoffLimit = ptr.To[int32](0) }, ""},
		"restarts in the pod":             {notes, "*/3 * * * *", "", func(s *batchv1.JobSpec) { s.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }, ""},
		"a pod on a lost node":            {"forbid-forever", "0 * * * *", batchv1.ForbidConcurrent, func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](60) }, "note: spec.concurrencyPolicy: is Forbid: a run is active until its pods have ended, also after its deadline"},
		"a pod on a lost node, beside it": {"forbid-forever", "0 * * * *", "", func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](60) }, ""},
	}
	check := func(cron *batchv1.CronJob, name string) string {
		return said(&manifest.Object{Kind: "CronJob", CronJob: cron}, name)
	}
	for name, tc := range cases {
		cron := &batchv1.CronJob{}
		cron.Name, cron.Spec.Schedule, cron.Spec.ConcurrencyPolicy = "cron", tc.schedule, tc.policy
		if tc.change != nil {
			tc.change(&cron.Spec.JobTemplate.Spec)
		}
		if got := check(cron, tc.check); got != tc.want && (tc.want == "" || !strings.Contains(got, tc.want)) {
			t.Errorf("%s: %q, expected %q", name, got, tc.want)
		}
	}
	cron := &batchv1.CronJob{}
	cron.Name, cron.Spec.Schedule, cron.Spec.ConcurrencyPolicy = "cron", "0 0 * * *", batchv1.ForbidConcurrent
	cron.Spec.StartingDeadlineSeconds, cron.Spec.JobTemplate.Spec.Suspend = ptr.To[int64](10), ptr.To(true)
	for name, want := range map[string]string{
		"suspended-runs": "warning: spec.jobTemplate.spec.suspend: is true: each run is created suspended, and stays so until somebody resumes it. To suspend the CronJob, set spec.suspend",
		"cron-fields":    "note: spec.startingDeadlineSeconds: is 10: when the controller is away for so long, as when another replica takes over, a run is left out, and the next one is 1d later",
	} {
		if got := check(cron, name); got != want {
			t.Errorf("%s: %q, expected %q", name, got, want)
		}
	}
	cron.Spec.Schedule, cron.Spec.JobTemplate.Labels = "* * * * *", map[string]string{"kueue.x-k8s.io/queue-name": "q"}
	if got := check(cron, "suspended-runs") + check(cron, "cron-fields"); got != "" {
		t.Errorf("in a queue, and every minute: %s", got)
	}
	cron.Spec.Schedule = "0 * * * *"
	cron.Spec.TimeZone = ptr.To("Etc/GMT-5")
	if got, want := check(cron, "schedule"), `note: spec.timeZone: "Etc/GMT-5" is 5 hours ahead of UTC: in these names the sign is the other way round`; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	cron.Spec.JobTemplate.Spec.ActiveDeadlineSeconds = ptr.To[int64](60)
	cron.Spec.JobTemplate.Annotations = map[string]string{wire.Policy: "{job: {terminationDeadlineSeconds: 600}}"}
	if got := check(cron, "forbid-forever"); got != "" {
		t.Errorf("with a deadline for pods on lost nodes: %s", got)
	}
}

// Tools that apply a Job again, and tools that inject a container, are known by labels and annotations.
func TestMistakesOfReportsWithTools(t *testing.T) {
	cases := map[string]struct {
		check               string
		annotations, labels map[string]string
		template            map[string]string
		// want is a part of what is found. Empty: nothing is found.
		want string
	}{
		"a Job of a chart":                  {check: "changed-template", labels: map[string]string{"helm.sh/chart": "c-1"}, want: "note: spec.template: Helm applies the Job with each upgrade, and the API server refuses a changed template (field is immutable): make it a hook"},
		"a Job that Helm says it manages":   {check: "changed-template", labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}, want: "Helm applies"},
		"a Job that another tool manages":   {check: "changed-template", labels: map[string]string{"app.kubernetes.io/managed-by": "me"}},
		"a hook of a chart":                 {check: "changed-template", annotations: map[string]string{"helm.sh/hook": "pre-upgrade"}, labels: map[string]string{"helm.sh/chart": "c-1"}},
		"a Job of Argo CD":                  {check: "changed-template", annotations: map[string]string{"argocd.argoproj.io/sync-wave": "1"}, want: "sync-options: Force=true,Replace=true"},
		"a Job that Argo CD replaces":       {check: "changed-template", annotations: map[string]string{"argocd.argoproj.io/sync-options": "Force=true,Replace=true"}},
		"a Job of Flux":                     {check: "changed-template", labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps"}, want: "kustomize.toolkit.fluxcd.io/force: enabled"},
		"a Job that Flux replaces":          {check: "changed-template", annotations: map[string]string{"kustomize.toolkit.fluxcd.io/force": "enabled"}, labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps"}},
		"a time to live, and Helm":          {check: "ttl", labels: map[string]string{"helm.sh/chart": "c-1"}, want: "Helm creates it again at the next upgrade"},
		"a time to live, and Flux":          {check: "ttl", labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps"}, want: "Flux creates it again when it reconciles next"},
		"Vault's agent":                     {check: "sidecars", template: map[string]string{"vault.hashicorp.com/agent-inject": "true"}, want: "warning: spec.template.metadata.annotations[vault.hashicorp.com/agent-inject]: an injected container that runs until it is stopped keeps the Job open for ever"},
		"Vault's agent, which ends":         {check: "sidecars", template: map[string]string{"vault.hashicorp.com/agent-inject": "true", "vault.hashicorp.com/agent-pre-populate-only": "true"}},
		"Istio's proxy":                     {check: "sidecars", template: map[string]string{"sidecar.istio.io/inject": "true"}, want: "note: spec.template.metadata.annotations[sidecar.istio.io/inject]: "},
		"Istio's proxy as a real sidecar":   {check: "sidecars", template: map[string]string{"sidecar.istio.io/inject": "true", "sidecar.istio.io/nativeSidecar": "true"}},
		"no proxy of Istio":                 {check: "sidecars", template: map[string]string{"sidecar.istio.io/inject": "false"}},
		"Linkerd's proxy as a real sidecar": {check: "sidecars", template: map[string]string{"linkerd.io/inject": "enabled", "config.beta.linkerd.io/proxy-enable-native-sidecar": "true"}},
	}
	for name, tc := range cases {
		job := &batchv1.Job{}
		job.Name, job.Annotations, job.Labels = "job", tc.annotations, tc.labels
		job.Spec.TTLSecondsAfterFinished, job.Spec.Template.Annotations = ptr.To[int32](600), tc.template
		if got := said(&manifest.Object{Kind: "Job", Job: job}, tc.check); got != tc.want && (tc.want == "" || !strings.Contains(got, tc.want)) {
			t.Errorf("%s: %q, expected %q", name, got, tc.want)
		}
	}
}

// A name that is made later is a surprise only to tools that apply.
func TestANameThatIsMadeLater(t *testing.T) {
	job := &batchv1.Job{}
	job.GenerateName = "job-"
	const want = "note: metadata.generateName: without a name, kubectl create takes it; kubectl apply, Kustomize and Helm need metadata.name"
	if got := said(&manifest.Object{Kind: "Job", Job: job}, "names"); got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	job.Annotations = map[string]string{"argocd.argoproj.io/hook": "PreSync"}
	if got := said(&manifest.Object{Kind: "Job", Job: job}, "names"); got != "" {
		t.Errorf("a hook: %q", got)
	}
}

// Every check has a name of its own.
func TestChecksHaveNames(t *testing.T) {
	names := map[string]bool{}
	for _, c := range jobcheck.Checks() {
		if names[c.Name] || c.Name == "" || c.About == "" {
			t.Errorf("check %q: %q", c.Name, c.About)
		}
		names[c.Name] = true
	}
}
