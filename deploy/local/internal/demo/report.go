package demo

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"jobpolicy.dev/deploy/local/cluster"
)

// print writes how a Job ended, in a few lines.
func (r result) print(w io.Writer) {
	verdict := "ok  "
	if !r.good() {
		verdict = "FAIL"
	}
	fmt.Fprintf(w, "%s  %-18s  %s\n", verdict, r.name, r.summary)
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
func showCronJobs(ctx context.Context, w io.Writer, obs *observer) {
	table, err := obs.page(ctx, cronPage)
	if err != nil {
		fmt.Fprintf(w, "\nno table of CronJobs: %v\n", err)
		return
	}
	fmt.Fprintf(w, "\n$ curl %s%s\n%s", obs.url, cronPage, table)
}

// explained is the Job of the example backoff-per-index, of which kubectl jobpolicy tells:
// pods fail in it and are tried again.
const explained = "job-backoff-limit-per-index-example"

// showCommand runs kubectl jobpolicy about a Job.
func showCommand(ctx context.Context, opts Options, c *cluster.Cluster, command, job string) {
	fmt.Fprintf(opts.Out, "\n$ kubectl jobpolicy %s job/%s\n", command, job)
	program := filepath.Join(opts.BinDir, "kubectl-jobpolicy")
	out, err := exec.CommandContext(ctx, program, command, "job/"+job, "--kubeconfig", c.Kubeconfig(), "--namespace", namespace).CombinedOutput()
	fmt.Fprintf(opts.Out, "%s", out)
	if err != nil {
		fmt.Fprintf(opts.Out, "%s: %v\n", command, err)
	}
}

// wrap breaks text into lines of width characters.
func wrap(text string, width int) string {
	var b strings.Builder
	for i, r := range []rune(strings.TrimSpace(text)) {
		if i > 0 && i%width == 0 {
			b.WriteByte('\n')
		}
		b.WriteRune(r)
	}
	return b.String()
}
