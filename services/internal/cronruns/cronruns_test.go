package cronruns_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/engine/schedule"
	"jobpolicy.dev/services/internal/cronruns"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestNext(t *testing.T) {
	cases := map[string]struct {
		plan  cronruns.Plan
		after string
		n     int
		want  string
	}{
		"no changes of the clock in UTC": {
			plan: cronruns.Plan{Schedule: "30 2 * * *"}, after: "2026-03-28T12:00:00Z", n: 2,
			want: "Sun 2026-03-29 02:30 UTC\nMon 2026-03-30 02:30 UTC\n",
		},
		"set forward, the run is left out": {
			plan: cronruns.Plan{Schedule: "30 2 * * *", Zone: "Europe/Berlin"}, after: "2026-03-28T00:00:00Z", n: 2,
			want: "Sat 2026-03-28 02:30 CET\n" +
				"- clocks are set forward from 02:00 to 03:00 (CEST); a run in the hour between is left out\n" +
				"Mon 2026-03-30 02:30 CEST\n",
		},
		"set forward, the run comes after": {
			plan:  cronruns.Plan{Schedule: "30 2 * * *", Zone: "Europe/Berlin", Options: schedule.Options{SkippedHour: schedule.RunAfter}},
			after: "2026-03-28T12:00:00Z", n: 1,
			want: "- clocks are set forward from 02:00 to 03:00 (CEST)\nSun 2026-03-29 03:00 CEST\n",
		},
		"set back, the run comes twice": {
			plan: cronruns.Plan{Schedule: "30 2 * * *", Zone: "Europe/Berlin"}, after: "2026-10-24T12:00:00Z", n: 3,
			want: "Sun 2026-10-25 02:30 CEST (the clock shows this time twice, this is the first time)\n" +
				"- clocks are set back from 03:00 to 02:00 (CET)\n" +
				"Sun 2026-10-25 02:30 CET (the clock shows this time for the second time)\n" +
				"Mon 2026-10-26 02:30 CET\n",
		},
		"a schedule that ends": {plan: cronruns.Plan{Schedule: "0 0 30 2 *"}, after: "2026-01-01T00:00:00Z", n: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := cronruns.Read(tc.plan)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, x := range r.Next(at(t, tc.after), tc.n) {
				switch {
				case x.Change != "":
					fmt.Fprintf(&got, "- %s\n", x.Change)
				case x.Note != "":
					fmt.Fprintf(&got, "%s (%s)\n", x.At.Format("Mon 2006-01-02 15:04 MST"), x.Note)
				default:
					fmt.Fprintln(&got, x.At.Format("Mon 2006-01-02 15:04 MST"))
				}
			}
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A zone's rules go on beyond its list of changes, and so do the changes of its clock.
func TestClocksChangeForEver(t *testing.T) {
	r, err := cronruns.Read(cronruns.Plan{Schedule: "0 0 1 1 *", Zone: "Europe/Berlin"})
	if err != nil {
		t.Fatal(err)
	}
	changes := 0
	for _, x := range r.Next(at(t, "2030-01-01T12:00:00Z"), 60) {
		if x.Change != "" {
			changes++
		}
	}
	if changes != 120 {
		t.Errorf("changes of the clock in 60 years: %d, want 120", changes)
	}
}

func TestCountAndLatest(t *testing.T) {
	r, err := cronruns.Read(cronruns.Plan{Schedule: "@hourly"})
	if err != nil {
		t.Fatal(err)
	}
	after, until := at(t, "2026-01-01T00:00:00Z"), at(t, "2026-01-01T05:30:00Z")
	n, last := r.Count(after, until), r.Latest(after, until)
	if n != 5 || !last.Equal(at(t, "2026-01-01T05:00:00Z")) {
		t.Errorf("%d runs, the last at %s; want 5, 05:00", n, last)
	}
	if none := r.Latest(after, after.Add(time.Minute)); !none.Equal(after) {
		t.Errorf("without a run the latest is %s, want %s", none, after)
	}
}

// A deadline in seconds may be longer than any duration.
func TestWhetherMissedRunsStart(t *testing.T) {
	now := at(t, "2026-01-01T05:30:00Z")
	m := cronruns.Missed{Count: 5, Since: now.Add(-6 * time.Hour), Last: now.Add(-30 * time.Minute)}
	for deadline, starts := range map[int64]bool{1799: false, 1800: true, 9_300_000_000: true, math.MaxInt64: true} {
		cron := &batchv1.CronJob{Spec: batchv1.CronJobSpec{StartingDeadlineSeconds: &deadline}}
		if text := m.Text(cron, now); strings.Contains(text, "can still start") != starts {
			t.Errorf("startingDeadlineSeconds %d: %q, starts: %t", deadline, text, starts)
		}
	}
}

// How many missed runs start is an option; with Replace it is one at most.
func TestHowManyMissedRunsStart(t *testing.T) {
	now := at(t, "2026-01-01T05:30:00Z")
	m := cronruns.Missed{Count: 5, Since: now.Add(-6 * time.Hour), Last: now.Add(-30 * time.Minute)}
	for policy, want := range map[string]string{
		"{}":                            "only that one can still start",
		"{cronJob: {maxMissedRuns: 0}}": "none of them starts",
		"{cronJob: {maxMissedRuns: 3}}": "the last 3 of them still start",
		"{cronJob: {maxMissedRuns: 9}}": "the last 5 of them still start",
	} {
		cron := &batchv1.CronJob{}
		cron.Annotations = map[string]string{"jobpolicy.dev/policy": policy}
		if text := m.Text(cron, now); !strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q", policy, text, want)
		}
		cron.Spec.ConcurrencyPolicy = batchv1.ReplaceConcurrent
		if text := m.Text(cron, now); strings.Contains(text, "of them still start") {
			t.Errorf("%s with Replace: %q", policy, text)
		}
	}
}

func TestWhichOfSeveralMissedRunsStart(t *testing.T) {
	now := at(t, "2026-01-01T05:30:00Z")
	m := cronruns.Missed{Count: 5, Since: now.Add(-6 * time.Hour), Last: now.Add(-30 * time.Minute)}
	cases := map[string]struct {
		spec batchv1.CronJobSpec
		most string
		want string
	}{
		"too late":                  {batchv1.CronJobSpec{StartingDeadlineSeconds: new(int64(60))}, "3", "; none of them starts any more: startingDeadlineSeconds is 60"},
		"too late and suspended":    {batchv1.CronJobSpec{StartingDeadlineSeconds: new(int64(60)), Suspend: new(true)}, "3", "; none of them starts any more: startingDeadlineSeconds is 60"},
		"some may be too late":      {batchv1.CronJobSpec{StartingDeadlineSeconds: new(int64(3600))}, "3", "; the last 3 of them still start, unless startingDeadlineSeconds rules them out"},
		"suspended":                 {batchv1.CronJobSpec{Suspend: new(true)}, "3", "; when the CronJob is resumed, the last 3 of them start"},
		"not wanted":                {batchv1.CronJobSpec{}, "0", "; none of them starts: cronJob.maxMissedRuns is 0"},
		"not wanted, may wait":      {batchv1.CronJobSpec{ConcurrencyPolicy: batchv1.ForbidConcurrent}, "0", "; that one can still start only if it waits for an active run: cronJob.maxMissedRuns is 0"},
		"not wanted, and suspended": {batchv1.CronJobSpec{ConcurrencyPolicy: batchv1.ForbidConcurrent, Suspend: new(true)}, "0", "; none of them starts: cronJob.maxMissedRuns is 0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cron := &batchv1.CronJob{Spec: tc.spec}
			cron.Annotations = map[string]string{"jobpolicy.dev/policy": "{cronJob: {maxMissedRuns: " + tc.most + "}}"}
			if text := m.Text(cron, now); !strings.HasSuffix(text, tc.want) {
				t.Errorf("%q, want %q", text, tc.want)
			}
		})
	}
}

func TestReadNamesWhatIsWrong(t *testing.T) {
	cases := map[string]struct {
		plan cronruns.Plan
		want string
	}{
		"a zone":     {cronruns.Plan{Schedule: "@daily", Zone: "Berlin"}, `time zone "Berlin": expected an IANA name`},
		"a schedule": {cronruns.Plan{Schedule: "0 25 * * *"}, `schedule "0 25 * * *": hour "25": expected 0 to 23`},
		"nothing":    {cronruns.Plan{}, `schedule "": expected five fields`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := cronruns.Read(tc.plan); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %v, want %q…", err, tc.want)
			}
		})
	}
}

// The error names each field that is wrong, and what it may hold.
func TestAWrongFieldIsNamed(t *testing.T) {
	const minute, hour, day = `expected 0 to 59`, `expected 0 to 23`, `expected 1 to 31`
	const month, weekday = `expected 1 to 12 or jan to dec`, `expected 0 (Sunday) to 6 or sun to sat`
	cases := map[string][]string{
		"61 * * * *":               {`minute "61": ` + minute, "end of range (61) above maximum (59)"},
		"* 24 * * *":               {`hour "24": ` + hour},
		"* * 0 * *":                {`day of month "0": ` + day, "below minimum (1)"},
		"* * * 13 *":               {`month "13": ` + month},
		"* * * juli *":             {`month "juli": ` + month},
		"* * * * 7":                {`day of week "7": ` + weekday},
		"* * * * montag":           {`day of week "montag": ` + weekday},
		"* * mon * *":              {`day of month "mon": ` + day},
		"* * * * fri-mon":          {`day of week "fri-mon": ` + weekday, "beyond end of range"},
		"*/0 * * * *":              {`minute "*/0": ` + minute, "step of range"},
		"0-60/5 * * * *":           {`minute "0-60/5": ` + minute},
		"1,99 * * * *":             {`minute "1,99": ` + minute},
		"61 25 * * *":              {`minute "61": ` + minute, `; hour "25": ` + hour},
		"TZ=Asia/Tokyo 61 * * * *": {`minute "61": ` + minute},
		"* * * *":                  {"expected five fields", "found 4"},
		"@hourly * * * *":          {"expected five fields", "unrecognized descriptor"},
		"@always":                  {"expected five fields", "unrecognized descriptor"},
	}
	for text, wants := range cases {
		_, err := cronruns.Read(cronruns.Plan{Schedule: text})
		if err == nil {
			t.Errorf("%q is read", text)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: has no %s", err, want)
			}
		}
		if strings.Contains(err.Error(), `"*"`) {
			t.Errorf("%v: names a field that is right", err)
		}
	}
}

func TestStartOfDay(t *testing.T) {
	cases := map[string]struct {
		zone string
		day  int
		want string
	}{
		"midnight":                  {zone: "America/Havana", day: 7, want: "2026-03-07T00:00:00-05:00"},
		"the clock skips midnight":  {zone: "America/Havana", day: 8, want: "2026-03-08T01:00:00-04:00"},
		"a day of the next month":   {zone: "Europe/Berlin", day: 32, want: "2026-04-01T00:00:00+02:00"},
		"the clock skips 2 o'clock": {zone: "Europe/Berlin", day: 29, want: "2026-03-29T00:00:00+01:00"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := cronruns.Read(cronruns.Plan{Schedule: "@daily", Zone: tc.zone})
			if err != nil {
				t.Fatal(err)
			}
			if got := r.StartOfDay(2026, time.March, tc.day).Format(time.RFC3339); got != tc.want {
				t.Errorf("starts at %s, want %s", got, tc.want)
			}
		})
	}
}
