package engine_test

import (
	"fmt"
	"testing"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// If no event follows, the caller asks again at once: for the rest if a limit has cut
// the decision, for a creation that was left for later, and for the next step of a
// verdict.
func TestADecisionSaysWhenToAskAgain(t *testing.T) {
	finished := func(n int) (rows string) {
		for i := range n {
			rows += fmt.Sprintf("finished p%02d phase=Succeeded\n", i)
		}
		return rows
	}
	cases := map[string]struct{ scene, want string }{
		"nothing to do":                {"job completions=3 parallelism=3\nstatus start=0s active=3 ready=0 terminating=0\npods active=3", "UNSPECIFIED"},
		"few are created":              {"job completions=9 parallelism=9\nsettings maxChanges=20\nstatus start=0s", "NONE"},
		"half of the limit is created": {"job completions=10 parallelism=10\nsettings maxChanges=20\nstatus start=0s", "AT_ONCE"},
		"few are created, because most of as many as may be are delayed": {
			"job mode=Indexed completions=10 parallelism=10 backoffLimitPerIndex=5\nsettings maxChanges=4\nnow 1s\nstatus start=0s\n" +
				"finished a phase=Failed index=0 at=1s\nfinished b phase=Failed index=1 at=1s\nfinished c phase=Failed index=2 at=1s", "AT_ONCE",
		},
		"few are created, because only few indexes may be tried now": {
			"job mode=Indexed completions=6 parallelism=6 backoffLimitPerIndex=5\nsettings maxChanges=4\nnow 1s\nstatus start=0s\n" +
				"finished b phase=Failed index=1 at=1s\nfinished c phase=Failed index=2 at=1s\nfinished d phase=Failed index=3 at=1s\n" +
				"finished e phase=Failed index=4 at=1s\nfinished f phase=Failed index=5 at=1s", "NONE",
		},
		"as many indexes as may be created are delayed, and others are not": {
			"job mode=Indexed completions=10 parallelism=10 backoffLimitPerIndex=5\nsettings maxChanges=2\nnow 1s\nstatus start=0s\n" +
				"pods active=1 indexes=9\nfinished a phase=Failed index=0 at=1s\nfinished b phase=Failed index=1 at=1s", "AT_ONCE",
		},
		"the limit is 1":                         {"job completions=1\nsettings maxChanges=1\nstatus start=0s", "AT_ONCE"},
		"few are released":                       {"job completions=9 parallelism=5\nsettings maxChanges=20\nstatus start=0s active=8\npods active=5\n" + finished(3), "WHEN_CONFIRMED"},
		"a fifth of the limit is released":       {"job completions=9 parallelism=5\nsettings maxChanges=20\nstatus start=0s active=9\npods active=5\n" + finished(4), "AT_ONCE"},
		"few are released, and some are created": {"job completions=9 parallelism=5\nsettings maxChanges=20\nstatus start=0s active=5\npods active=1\n" + finished(4), "WHEN_CONFIRMED"},
		"the last ones are released":             {"job completions=3 parallelism=3\nsettings maxChanges=20\nstatus start=0s active=3\ncondition SuccessCriteriaMet\n" + finished(3), "AT_ONCE"},
		"a verdict is announced":                 {"job completions=3 parallelism=3 activeDeadlineSeconds=1\nnow 2s\nstatus start=0s active=3 ready=0 terminating=0\npods active=3", "AT_ONCE"},
		"a verdict is announced whose condition was there, not true": {
			"job completions=3 parallelism=3 activeDeadlineSeconds=1\nnow 2s\nstatus start=0s active=3 ready=0 terminating=0\ncondition FailureTarget status=False\npods active=3", "AT_ONCE",
		},
		"a count is brought up to date":            {"job completions=3 parallelism=3\nstatus start=0s active=3 ready=0\npods active=3 ready=1", "NONE"},
		"pods are not listed":                      {"job completions=9 parallelism=5\nsettings maxChanges=20\nstatus start=0s active=9\npods active=5\nunlisted succeeded=2\n" + finished(1), "AT_ONCE"},
		"as many are deleted as may be":            {"job completions=3 parallelism=1\nsettings maxChanges=2\nstatus start=0s active=3\npods active=3\nrow a\nrow b\nrow c", "AT_ONCE"},
		"fewer are deleted than may be":            {"job completions=3 parallelism=2\nsettings maxChanges=2\nstatus start=0s active=3\npods active=3\nrow a\nrow b\nrow c", "WHEN_CONFIRMED"},
		"rows are needed":                          {"job completions=3 suspend=true\npods active=3", "UNSPECIFIED"},
		"a pod is left with its finalizer":         {"job completions=3\nstatus start=0s\ncondition Complete\nfinished a phase=Succeeded", "AT_ONCE"},
		"the Job itself is deleted":                {"job completions=3 ttlSecondsAfterFinished=0\nnow 2s\nstatus start=0s\ncondition Complete", "NONE"},
		"pods are created, and their gang is made": {"job mode=Indexed completions=3 parallelism=3\nsettings groups=ALL maxChanges=20", "NONE"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			s.mustTell(t, tc.scene)
			got, err := engine.DecideJob(s.req)
			if err != nil {
				t.Fatal(err)
			}
			if want := jobpolicyv1.FollowUp_value["FOLLOW_UP_"+tc.want]; int32(got.GetFollowUp()) != want {
				t.Errorf("follow up %v, want %s\n%s", got.GetFollowUp(), tc.want, render(got))
			}
		})
	}
}
