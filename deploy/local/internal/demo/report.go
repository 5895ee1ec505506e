package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
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
	for _, command := range [][]string{{"explain", "job/" + explained}, {"timeline", "job/" + explained}} {
		if _, err := showCommand(ctx, opts, c, command...); err != nil {
			return err
		}
	}
	if err := showStagger(ctx, opts, c); err != nil {
		return err
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

// errSameOffset: the CronJobs of a group have the same schedule and are not spread.
var errSameOffset = errors.New("the CronJobs do not start at offsets of their own")

// showStagger shows that two CronJobs of one schedule start at different times.
func showStagger(ctx context.Context, opts Options, c *cluster.Cluster) error {
	offset := regexp.MustCompile(`starts \S+ later`)
	var offsets []string
	for _, cron := range []string{"load-customers", "load-orders"} {
		out, err := showCommand(ctx, opts, c, "next", "cronjob/"+cron, "-n", "1")
		if err != nil {
			return err
		}
		offsets = append(offsets, offset.FindString(out))
	}
	if offsets[0] == offsets[1] || slices.Contains(offsets, "") {
		return fmt.Errorf("%w: %q", errSameOffset, offsets)
	}
	return nil
}

// showCommand runs kubectl jobpolicy and returns what it says.
func showCommand(ctx context.Context, opts Options, c *cluster.Cluster, command ...string) (string, error) {
	fmt.Fprintf(opts.Out, "\n$ kubectl jobpolicy %s\n", strings.Join(command, " "))
	program := filepath.Join(opts.BinDir, "kubectl-jobpolicy")
	args := append(slices.Clone(command), "--kubeconfig", c.Kubeconfig(), "--namespace", namespace)
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	fmt.Fprintf(opts.Out, "%s", out)
	if err != nil {
		return "", fmt.Errorf("kubectl jobpolicy %s: %w", command[0], err)
	}
	return string(out), nil
}

// wrap breaks text into lines of width characters.
func wrap(text string, width int) string {
	var lines []string
	for line := range slices.Chunk([]rune(strings.TrimSpace(text)), width) {
		lines = append(lines, string(line))
	}
	return strings.Join(lines, "\n")
}
