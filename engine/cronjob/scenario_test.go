package cronjob_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/types/known/timestamppb"

	"jobpolicy.dev/engine"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// TestScenarios replays testdata, which reads as a calendar. The lines of a
// directive's input say what is seen (see cluster.tell). After a change of the
// engine, run with -rewrite and read the diff.
//
//	look [rules]       decide and print the decision; with rules, what every rule said
//	look apply         the same, then carry the decision out
//	play until=TIME    decide and carry out, at each requeue time and when a run ends,
//	                   until then; a line for each decision that does something
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			datadriven.RunTest(t, path, c.directive)
			c.cases.check(t, name)
		})
	}
}

func (c *cluster) directive(t *testing.T, d *datadriven.TestData) string {
	for line := range strings.SplitSeq(d.Input, "\n") {
		if err := c.tell(line); err != nil {
			d.Fatalf(t, "%s: %v", line, err)
		}
	}
	switch d.Cmd {
	case "look":
		return c.look(d.HasArg("rules"), d.HasArg("apply"))
	case "play":
		var until string
		d.ScanArgs(t, "until", &until)
		return c.play(timestamp(until).AsTime())
	}
	d.Fatalf(t, "unknown directive %s", d.Cmd)
	return ""
}

func (c *cluster) look(rules, apply bool) string {
	ask := c.ask
	if apply {
		ask = c.decide
	}
	resp, err := ask()
	if err != nil {
		return renderError(err)
	}
	if apply {
		c.carryOut(resp)
	}
	return render(resp, rules)
}

// play decides and carries out at each moment at which something happens, up to a time.
func (c *cluster) play(until time.Time) string {
	var b strings.Builder
	for !c.now().After(until) {
		resp, err := c.decide()
		if err != nil {
			return b.String() + renderError(err)
		}
		if resp.GetDisposition() == jobpolicyv1.Disposition_DISPOSITION_APPLY {
			b.WriteString(c.calendarLine(resp))
			c.carryOut(resp)
			continue
		}
		for _, e := range resp.GetEvents() {
			fmt.Fprintf(&b, "%s %s: %s\n", clock(c.req.Now), e.GetReason(), e.GetMessage())
		}
		next, ok := c.nextMoment(resp.GetRequeueTime())
		if !ok {
			break
		}
		c.req.Now = timestamppb.New(next)
	}
	return b.String() + renderMessage(c.req.Status, "status")
}

// nextMoment is when the next thing happens: the requeue time of the decision, or the end
// of a run. It ends that run.
func (c *cluster) nextMoment(requeue *timestamppb.Timestamp) (time.Time, bool) {
	var next time.Time
	var ends *jobpolicyv1.OwnedJob
	if requeue != nil {
		next = requeue.AsTime()
	}
	for _, job := range c.req.Jobs {
		end := job.GetStartTime().AsTime().Add(c.takes)
		if job.GetOutcome() == outcomeActive && (next.IsZero() || end.Before(next)) {
			next, ends = end, job
		}
	}
	if ends != nil {
		c.finish(ends, next, c.fails)
	}
	return next, !next.IsZero()
}

func (c *cluster) calendarLine(resp *jobpolicyv1.DecideCronJobResponse) string {
	var parts []string
	for _, d := range resp.GetDelete() {
		parts = append(parts, fmt.Sprintf("delete %s (%s)", d.GetName(), strings.TrimPrefix(d.GetReason().String(), "DELETE_JOB_REASON_")))
	}
	if create := resp.GetCreate(); create != nil {
		parts = append(parts, fmt.Sprintf("create %s for %s", create.GetName(), clock(create.GetScheduledTime())))
	}
	if e := resp.GetEdits(); e != nil {
		parts = append(parts, "edit "+inlineMessage(e.ProtoReflect()))
	}
	if st := resp.GetStatus(); st != nil {
		parts = append(parts, fmt.Sprintf("status active=%d last=%s", len(st.GetActive()), clock(st.GetLastScheduleTime())))
	}
	for _, e := range resp.GetEvents() {
		if e.GetReason() != "SuccessfulCreate" && e.GetReason() != "SuccessfulDelete" {
			parts = append(parts, e.GetReason())
		}
	}
	return clock(c.req.Now) + " " + strings.Join(parts, ", ") + "\n"
}

func renderError(err error) string {
	var invalid *engine.InvalidRequestError
	if !errors.As(err, &invalid) {
		return fmt.Sprintf("error: %v\n", err)
	}
	var b strings.Builder
	for _, v := range invalid.Violations {
		fmt.Fprintf(&b, "invalid %s: %s\n", v.Field, v.Description)
	}
	return b.String()
}
