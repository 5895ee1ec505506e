package options_test

import (
	"slices"
	"strings"
	"testing"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

func TestAnOperatorsLimits(t *testing.T) {
	bounds := options.Bounds{}
	for _, text := range []string{"cronJob.startJitterSeconds=10:60", "job.ttlSecondsAfterFailed=3600:", "job.ttlSecondsAfterComplete=:60", "job.retryDelay.factor=1:1.5"} {
		if err := bounds.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		spec *jobpolicyv1.PolicySpec
		want []string
	}{
		"nothing":      {spec: &jobpolicyv1.PolicySpec{Job: &jobpolicyv1.JobOptions{}}},
		"within":       {spec: &jobpolicyv1.PolicySpec{Job: &jobpolicyv1.JobOptions{TtlSecondsAfterFailed: new(int32(3600)), TtlSecondsAfterComplete: new(int32(60))}}},
		"unlimited":    {spec: &jobpolicyv1.PolicySpec{CronJob: &jobpolicyv1.CronJobOptions{SuspendAfterFailures: new(int32(100))}}},
		"below a span": {spec: &jobpolicyv1.PolicySpec{CronJob: &jobpolicyv1.CronJobOptions{StartJitterSeconds: new(int32(9))}}, want: []string{"cronJob.startJitterSeconds: expected a whole number from 10 to 60 (a limit of this cluster), found 9"}},
		"above a fraction": {spec: &jobpolicyv1.PolicySpec{Job: &jobpolicyv1.JobOptions{RetryDelay: &jobpolicyv1.RetryDelay{Factor: new(1.75)}}}, want: []string{
			"job.retryDelay.factor: expected a number from 1 to 1.5 (a limit of this cluster), found 1.75",
		}},
		"two": {spec: &jobpolicyv1.PolicySpec{Job: &jobpolicyv1.JobOptions{TtlSecondsAfterFailed: new(int32(3599)), TtlSecondsAfterComplete: new(int32(61))}}, want: []string{
			"job.ttlSecondsAfterComplete: expected a whole number of at most 60 (a limit of this cluster), found 61",
			"job.ttlSecondsAfterFailed: expected a whole number of at least 3600 (a limit of this cluster), found 3599",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := texts(bounds.Check(tc.spec))
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("problems\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

func TestLimitsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"":                                `"": expected FIELD=MIN:MAX, of which MIN or MAX may be left out`,
		"job.ttlSecondsAfterFailed=5":     `"job.ttlSecondsAfterFailed=5": expected FIELD=MIN:MAX, of which MIN or MAX may be left out`,
		"job.ttlSecondsAfterFailed=:":     `"job.ttlSecondsAfterFailed=:": expected FIELD=MIN:MAX, of which MIN or MAX may be left out`,
		"job.ttlSecondsAfterFailed=a:":    `"job.ttlSecondsAfterFailed=a:": expected numbers around the colon, found "a"`,
		"job.ttlSecondsAfterFailed=6:5":   `"job.ttlSecondsAfterFailed=6:5": expected MIN to be at most MAX`,
		"job.ttl=1:":                      `"job.ttl=1:": no field with a number is called "job.ttl" in the spec of a JobPolicy`,
		"job=1:":                          `"job=1:": no field with a number is called "job" in the spec of a JobPolicy`,
		"cronJob.skippedHour=1:":          `"cronJob.skippedHour=1:": no field with a number is called "cronJob.skippedHour" in the spec of a JobPolicy`,
		"job.ttlSecondsAfterFailed.x=1:2": `"job.ttlSecondsAfterFailed.x=1:2": no field with a number is called "job.ttlSecondsAfterFailed.x" in the spec of a JobPolicy`,
	} {
		if err := (options.Bounds{}).Set(text); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}
