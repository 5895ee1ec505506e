package controller

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/executor/wire"
)

const (
	us   = "jobpolicy.dev/executor"
	them = "example.com/other"
)

// beside and instead are the executor beside the built-in controllers, and in place of them.
var beside, instead = Scope{ManagedBy: us}, Scope{ManagedBy: us, ReplaceBuiltin: true}

func jobOf(managedBy string) *batchv1.Job {
	if managedBy == "" {
		return &batchv1.Job{}
	}
	return &batchv1.Job{Spec: batchv1.JobSpec{ManagedBy: &managedBy}}
}

func finished(managedBy string) *batchv1.Job {
	j := jobOf(managedBy)
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	return j
}

func deleting(j *batchv1.Job) *batchv1.Job {
	j.DeletionTimestamp = &metav1.Time{}
	return j
}

func TestWhoseAJobIs(t *testing.T) {
	cases := map[string]struct {
		job             *batchv1.Job
		beside, instead bool // managed
		unmanaged       bool // counts as another controller's
	}{
		"nobody named":                       {job: jobOf(""), instead: true},
		"the built-in controller is named":   {job: jobOf(batchv1.JobControllerName), instead: true},
		"we are named":                       {job: jobOf(us), beside: true, instead: true},
		"somebody else is named":             {job: jobOf(them), unmanaged: true},
		"we are named, and it is finished":   {job: finished(us), beside: true, instead: true},
		"somebody else, and it has finished": {job: finished(them), unmanaged: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			done := wire.FinishedCondition(tc.job) != nil
			for s, managed := range map[Scope]bool{beside: tc.beside, instead: tc.instead} {
				if got := s.Manages(tc.job); got != managed {
					t.Errorf("%+v: managed %v, want %v", s, got, managed)
				}
				if got, want := s.Reconciles(tc.job), managed && !done; got != want {
					t.Errorf("%+v: reconciled %v, want %v", s, got, want)
				}
				if got := s.Unmanaged(tc.job); got != tc.unmanaged {
					t.Errorf("%+v: unmanaged %v, want %v", s, got, tc.unmanaged)
				}
			}
		})
	}
	if instead.Reconciles(nil) {
		t.Error("a Job that does not exist is reconciled")
	}
}

func TestWhoseJobsExpire(t *testing.T) {
	cases := map[string]struct {
		job             *batchv1.Job
		beside, instead bool
	}{
		"ours":                     {job: finished(us), beside: true, instead: true},
		"the built-in one's":       {job: finished(""), instead: true},
		"another controller's":     {job: finished(them), instead: true},
		"it has not finished":      {job: jobOf(us)},
		"it is about to be gone":   {job: deleting(finished(us))},
		"it was never anybody's":   {job: jobOf("")},
		"another's, not finished":  {job: jobOf(them)},
		"another's, being deleted": {job: deleting(finished(them))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for s, want := range map[Scope]bool{beside: tc.beside, instead: tc.instead} {
				if got := s.Expires(tc.job); got != want {
					t.Errorf("%+v: %v, want %v", s, got, want)
				}
			}
		})
	}
}

func cron(suspend bool, annotations map[string]string) *batchv1.CronJob {
	return &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: batchv1.CronJobSpec{Suspend: &suspend}}
}

func TestWhoseACronJobIsAndWhetherItIsSuspended(t *testing.T) {
	named := func(manager string) map[string]string { return map[string]string{wire.CronJobManagedBy: manager} }
	ours := func(suspend string) map[string]string {
		return map[string]string{wire.CronJobManagedBy: us, wire.CronJobSuspend: suspend}
	}
	cases := map[string]struct {
		cron                       *batchv1.CronJob
		beside, instead, suspended bool
	}{
		"suspend left out":                    {cron: &batchv1.CronJob{}, instead: true},
		"nobody named":                        {cron: cron(false, nil), instead: true},
		"nobody named, suspended":             {cron: cron(true, nil), instead: true, suspended: true},
		"we are named, and it is suspended":   {cron: cron(true, named(us)), beside: true, instead: true},
		"we are named, and it is not":         {cron: cron(false, named(us)), instead: true},
		"somebody else is named":              {cron: cron(true, named(them)), suspended: true},
		"ours, suspended by annotation":       {cron: cron(true, ours("true")), beside: true, instead: true, suspended: true},
		"ours, not suspended by annotation":   {cron: cron(true, ours("false")), beside: true, instead: true},
		"ours, an annotation that says maybe": {cron: cron(true, ours("maybe")), beside: true, instead: true, suspended: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for s, want := range map[Scope]bool{beside: tc.beside, instead: tc.instead} {
				if got := s.Runs(tc.cron); got != want {
					t.Errorf("%+v: run %v, want %v", s, got, want)
				}
				if got := s.Suspended(tc.cron); got != tc.suspended {
					t.Errorf("%+v: suspended %v, want %v", s, got, tc.suspended)
				}
			}
		})
	}
}
