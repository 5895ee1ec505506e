package views

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/executor"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The runs of an interval count from the last one, so from the next one that the engine tells.
func TestCalendarOfAnInterval(t *testing.T) {
	now := time.Date(2026, time.March, 26, 0, 10, 0, 0, time.UTC)
	cases := map[string][]string{
		"@every 36h": {"1 18:00", "0", "1 06:00", "1 18:00", "0", "1 06:00", "1 18:00"},
		"@every 7h":  {"1 18:00", "4 01:00 08:00 15:00", "3 05:00 12:00 19:00", "4 02:00 09:00 16:00", "3 06:00 13:00 20:00", "3 03:00 10:00 17:00", "4 00:00 07:00 14:00"},
	}
	for schedule, want := range cases {
		o := executor.CronJobObservation{
			CronJob:     &batchv1.CronJob{Spec: batchv1.CronJobSpec{Schedule: schedule}},
			Explanation: &jobpolicyv1.CronJobExplanation{NextScheduleTime: timestamppb.New(now.Add(17*time.Hour + 50*time.Minute))},
		}
		var row calendarRow
		if err := json.Unmarshal(cronRow(o, now), &row); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, day := range row.Days {
			text := fmt.Sprint(day.Runs)
			for _, run := range day.First {
				text += " " + run.At
			}
			got = append(got, text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", schedule, got, want)
		}
	}
}
