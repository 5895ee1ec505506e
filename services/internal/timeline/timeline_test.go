package timeline_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/services/internal/timeline"
)

var begin = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }

func chart() timeline.Chart {
	return timeline.New("Job ns/job", at(48), []timeline.Bar{
		{Name: "b", Created: at(24), Started: at(28), Text: "running"},
		{Name: "a<b", Created: at(0), Started: at(4), Ended: at(12), Outcome: "failed", Text: "failed, exit code 3"},
		{Name: "c", Created: at(24), Text: "Pending"},
	}, []timeline.Mark{{at(36), "Suspended"}, {at(0), "started"}})
}

func TestText(t *testing.T) {
	c := chart()
	var got strings.Builder
	if err := c.WriteText(&got); err != nil {
		t.Fatal(err)
	}
	want := `Job ns/job
from 2026-05-04T12:00:00Z on, for 48s

a<b  |....========x                                   |  failed, exit code 3
b    |                        ....===================>|  running
c    |                        .......................>|  Pending

        0s  started
       36s  Suspended
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHTML(t *testing.T) {
	c := chart()
	var got strings.Builder
	if err := c.WriteHTML(&got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`<th scope="row">a&lt;b</th>`, `<i class="failed" style="left:8.33%;width:16.67%">`, `<i class="run" style="left:58.33%;width:41.67%">`,
		`<i class="wait" style="left:50.00%;width:50.00%">`, "<td>36s</td><td>Suspended</td>",
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("the page lacks %s:\n%s", want, got.String())
		}
	}
}

func TestAChartOfNothing(t *testing.T) {
	c := timeline.New("Job ns/job", at(0), nil, nil)
	var got strings.Builder
	if err := c.WriteText(&got); err != nil || !strings.Contains(got.String(), "Job ns/job") {
		t.Errorf("%q, error %v", got.String(), err)
	}
}
