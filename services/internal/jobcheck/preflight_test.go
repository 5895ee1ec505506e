package jobcheck_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"jobpolicy.dev/services/internal/jobcheck"
)

var now = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

func job(name string, change func(*batchv1.Job)) batchv1.Job {
	j := batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid"}}
	change(&j)
	return j
}

func cron(name string, change func(*batchv1.CronJob)) batchv1.CronJob {
	c := batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "cron"}, Spec: batchv1.CronJobSpec{Schedule: "0 12 * * *"}}
	change(&c)
	return c
}

func controlledBy(name string, uid types.UID) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1beta1", Kind: "CronJob", Name: name, UID: uid, Controller: ptr.To(true)}}
	}
}

func ignoring(disruptions bool) *batchv1.PodFailurePolicy {
	rule := batchv1.PodFailurePolicyRule{Action: batchv1.PodFailurePolicyActionIgnore}
	if disruptions {
		rule.OnPodConditions = []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget}}
	}
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{rule}}
}

// touched are the objects that differences touch, by the difference.
func touched(c jobcheck.Cluster) map[string][]string {
	c.Now = now
	got := map[string][]string{}
	for _, touch := range jobcheck.Preflight(c) {
		got[touch.ID] = touch.Objects
	}
	return got
}

func TestCheck(t *testing.T) {
	finished := []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	cases := map[string]struct {
		cluster jobcheck.Cluster
		want    map[string][]string // objects by the difference
	}{
		"nothing out of the ordinary": {
			cluster: jobcheck.Cluster{
				Jobs:     []batchv1.Job{job("a", func(*batchv1.Job) {})},
				CronJobs: []batchv1.CronJob{cron("c", func(*batchv1.CronJob) {})},
			},
			want: map[string][]string{},
		},
		"failures that are ignored": {
			cluster: jobcheck.Cluster{
				Jobs: []batchv1.Job{
					job("a", func(j *batchv1.Job) { j.Spec.PodFailurePolicy = ignoring(true) }),
					job("done", func(j *batchv1.Job) { j.Spec.PodFailurePolicy, j.Status.Conditions = ignoring(true), finished }),
					job("others", func(j *batchv1.Job) {
						j.Spec.PodFailurePolicy, j.Spec.ManagedBy = ignoring(true), ptr.To("example.com/x")
					}),
				},
				CronJobs: []batchv1.CronJob{cron("c", func(c *batchv1.CronJob) { c.Spec.JobTemplate.Spec.PodFailurePolicy = ignoring(false) })},
			},
			want: map[string][]string{"ignored-disruption": {"job ns/a"}, "running-when-failing": {"job ns/a", "cronjob ns/c"}},
		},
		"others": {
			cluster: jobcheck.Cluster{
				Jobs: []batchv1.Job{job("big", func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](501) })},
				CronJobs: []batchv1.CronJob{
					cron("lists", func(c *batchv1.CronJob) { c.Status.Active = []corev1.ObjectReference{{UID: "uid"}} }),
				},
			},
			want: map[string][]string{
				"many-deletions": {"job ns/big"}, "active-but-not-controlled": {"cronjob ns/lists"},
			},
		},
		"pods without labels": {
			cluster: jobcheck.Cluster{Jobs: []batchv1.Job{
				job("bare", func(j *batchv1.Job) { j.Spec.ManualSelector = ptr.To(true) }),
				job("indexed", func(j *batchv1.Job) {
					j.Spec.ManualSelector, j.Spec.CompletionMode = ptr.To(true), ptr.To(batchv1.IndexedCompletion)
				}),
				job("labelled", func(j *batchv1.Job) {
					j.Spec.ManualSelector, j.Spec.Template.Labels = ptr.To(true), map[string]string{"app": "a"}
				}),
			}},
			want: map[string][]string{"template-without-labels": {"job ns/bare"}},
		},
		"another controller with the CronJob's name": {
			cluster: jobcheck.Cluster{
				Jobs:     []batchv1.Job{job("old", controlledBy("c", "another")), job("run", controlledBy("d", "cron")), job("else", controlledBy("e", "another"))},
				CronJobs: []batchv1.CronJob{cron("c", func(*batchv1.CronJob) {}), cron("d", func(*batchv1.CronJob) {})},
			},
			want: map[string][]string{"namesake": {"cronjob ns/c"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, touched(tc.cluster)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Jobs of another controller are left alone, also those that a CronJob makes.
func TestCheckOfManagedTemplates(t *testing.T) {
	large := func(manager *string) func(*batchv1.CronJob) {
		return func(c *batchv1.CronJob) {
			c.Spec.JobTemplate.Spec.Parallelism, c.Spec.JobTemplate.Spec.ManagedBy = ptr.To[int32](501), manager
		}
	}
	got := touched(jobcheck.Cluster{CronJobs: []batchv1.CronJob{cron("ours", large(nil)), cron("theirs", large(ptr.To("example.com/queue")))}})
	if diff := cmp.Diff(map[string][]string{"many-deletions": {"cronjob ns/ours"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheckOfTimes(t *testing.T) {
	later := metav1.NewTime(now.Add(time.Hour))
	cluster := jobcheck.Cluster{
		Jobs: []batchv1.Job{
			job("kept", func(j *batchv1.Job) {
				j.Spec.Suspend, j.Status.StartTime, j.Spec.ActiveDeadlineSeconds = ptr.To(true), &later, ptr.To[int64](5)
			}),
			job("long", func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](1 << 40) }),
		},
		CronJobs: []batchv1.CronJob{
			cron("ahead", func(c *batchv1.CronJob) { c.Status.LastScheduleTime = &later }),
			cron("night", func(c *batchv1.CronJob) { c.Spec.Schedule, c.Spec.TimeZone = "30 2 * * *", ptr.To("Europe/Berlin") }),
			cron("every", func(c *batchv1.CronJob) {
				c.Spec.Schedule, c.Spec.StartingDeadlineSeconds = "@every 1h", ptr.To[int64](60)
			}),
			cron("short", func(c *batchv1.CronJob) { c.Spec.Schedule = "@every 20s" }),
			cron("zero", func(c *batchv1.CronJob) { c.Spec.StartingDeadlineSeconds = ptr.To[int64](0) }),
		},
	}
	want := map[string][]string{
		"kept-start-time": {"job ns/kept"}, "long-deadline": {"job ns/long"},
		"future-schedule-time": {"cronjob ns/ahead"}, "clock-changes": {"cronjob ns/night"},
		"every-with-short-deadline": {"cronjob ns/every"}, "deadline-of-zero": {"cronjob ns/zero"},
		"short-every": {"cronjob ns/short"},
	}
	if diff := cmp.Diff(want, touched(cluster)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
