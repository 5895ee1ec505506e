package demo

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"jobpolicy.dev/deploy/local/cluster"
)

// print writes how a Job ended, in a few lines.
func (r result) print(w io.Writer) {
	verdict := "ok  "
	if !r.good() {
		verdict = "FAIL"
	}
	fmt.Fprintf(w, "%s  %-18s  %s\n", verdict, r.name, r.shows)
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(w, "      %-11s  %s\n", label, text)
		}
	}
	if r.expected == r.seen {
		line("as expected", r.seen)
	} else {
		line("expected", r.expected)
		line("seen", r.seen)
	}
	for _, problem := range r.problems {
		line("problem", problem)
	}
	line("why", r.why)
}

// showCronJobs writes the executor's table of CronJobs.
func showCronJobs(ctx context.Context, w io.Writer, obs *observer) error {
	table, err := obs.page(ctx, cronPage)
	if err != nil {
		return fmt.Errorf("table of CronJobs: %w", err)
	}
	_, err = fmt.Fprintf(w, "\n$ curl %s%s\n%s", obs.url, cronPage, table)
	return err
}

// lookPage is the executor's page for people.
const lookPage = "/debug/page/"

// showMore writes what jobpolicy itself tells of the Jobs: when the CronJobs run next, why
// one Job ended, its life as a picture, and the address of the executor's page.
func showMore(ctx context.Context, opts Options, c *cluster.Cluster, obs *observer) error {
	if obs.past(explained).job == nil {
		return fmt.Errorf("the Job %s was not seen", explained)
	}
	if err := showCronJobs(ctx, opts.Out, obs); err != nil {
		return err
	}
	for _, command := range []string{"explain", "timeline"} {
		if err := showCommand(ctx, opts, c, command, explained); err != nil {
			return err
		}
	}
	if _, err := obs.page(ctx, lookPage); err != nil {
		return fmt.Errorf("the executor's page: %w", err)
	}
	_, err := fmt.Fprintf(opts.Out, "\nThe executor's page was at %s%s meanwhile; jobpolicy-local up runs it until Ctrl-C.\n", c.ExecutorURL(), lookPage)
	return err
}

// explained is the Job of the example backoff-per-index, of which kubectl jobpolicy tells:
// pods fail in it and are tried again.
const explained = "job-backoff-limit-per-index-example"

// showCommand runs kubectl jobpolicy about a Job.
func showCommand(ctx context.Context, opts Options, c *cluster.Cluster, command, job string) error {
	fmt.Fprintf(opts.Out, "\n$ kubectl jobpolicy %s job/%s\n", command, job)
	program := filepath.Join(opts.BinDir, "kubectl-jobpolicy")
	out, err := exec.CommandContext(ctx, program, command, "job/"+job, "--kubeconfig", c.Kubeconfig(), "--namespace", namespace).CombinedOutput()
	fmt.Fprintf(opts.Out, "%s", out)
	if err != nil {
		return fmt.Errorf("kubectl jobpolicy %s: %w", command, err)
	}
	return nil
}

// wrap breaks text into lines of width characters.
func wrap(text string, width int) string {
	var lines []string
	for line := range slices.Chunk([]rune(strings.TrimSpace(text)), width) {
		lines = append(lines, string(line))
	}
	return strings.Join(lines, "\n")
}
