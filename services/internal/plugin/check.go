package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"jobpolicy.dev/services/internal/buildinfo"
	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/jobcheck"
	"jobpolicy.dev/services/internal/manifest"
)

const checkLong = `Reads Jobs, CronJobs and JobPolicies from files and reports, each with its line, what the API server
would refuse (error), what is probably a mistake (warning), and what is often misunderstood
(note). Needs no cluster.

Without a cluster it knows the rules of Kubernetes 1.37 for Jobs and CronJobs, and those for
the fields of a pod template that people use. It does not know all of the rest, such as options
for Windows, nor what quotas and admission refuse. With --dry-run=server it also asks the API
server, which keeps nothing: first for the object, then for the next Job of a CronJob.

The exit code is 1 if there is a finding of the severity that --fail-on names, or a worse one.`

const checkExample = `  kubectl jobpolicy check -f job.yaml
  helm template . | kubectl jobpolicy check -f - --fail-on warning
  kubectl jobpolicy check -f deploy/ -o sarif > findings.sarif
  kubectl jobpolicy check -f job.yaml --dry-run=server --namespace team-a`

type checkCommand struct {
	cli.IO
	files  []string
	failOn string
	quiet  bool
	dryRun string
	output *cli.Output
	// cluster and reader are for a dry run; reader is nil without one.
	cluster clusterFlags
	reader  *clusterReader
}

// severities are in order, the least severe first.
var severities = []string{string(jobcheck.Note), string(jobcheck.Warning), string(jobcheck.Error)}

func newCheck(streams cli.IO) *cobra.Command {
	c := &checkCommand{IO: streams}
	cmd := &cobra.Command{
		Use: "check -f FILE", Short: "Find mistakes in manifests of Jobs, CronJobs and JobPolicies", Long: checkLong, Example: checkExample, Args: cli.FileOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringArrayVarP(&c.files, "filename", "f", nil, "A `file` or folder with YAML or JSON; - is standard input. May be repeated.")
	fs.StringVar(&c.failOn, "fail-on", string(jobcheck.Error), "The mildest `severity` with which the exit code is 1: error, warning or note.")
	fs.BoolVarP(&c.quiet, "quiet", "q", false, "Leave notes out.")
	fs.StringVar(&c.dryRun, "dry-run", "none", "The `mode`: none, or server, which also asks the API server without creating anything.")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "server"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(severities, cobra.ShellCompDirectiveNoFileComp))
	c.output = cli.AddOutput(cmd, "wide", "sarif")
	c.cluster.AddFlags(fs, true)
	return cmd
}

func (c *checkCommand) run(ctx context.Context) error {
	if len(c.files) == 0 {
		return cli.Usagef("--filename: is required: a file or folder; - is standard input")
	}
	threshold := slices.Index(severities, c.failOn)
	if threshold < 0 {
		return cli.Usagef("--fail-on: expected error, warning or note, got %q", c.failOn)
	}
	switch c.dryRun {
	case "none":
	case "server":
		var err error
		if c.reader, err = c.cluster.Connect(); err != nil {
			return err
		}
	default:
		return cli.Usagef("--dry-run: expected none or server, got %q", c.dryRun)
	}
	var objects []*manifest.Object
	for _, name := range c.files {
		list, err := c.readPath(name)
		if err != nil {
			return err
		}
		objects = append(objects, list...)
	}
	manifest.UsePolicies(objects)
	findings := []jobcheck.Finding{}
	for _, o := range objects {
		found, err := c.checkObject(ctx, o)
		if err != nil {
			return err
		}
		for _, f := range found {
			if !c.quiet || f.Severity != jobcheck.Note {
				findings = append(findings, f)
			}
		}
	}
	if err := c.print(findings, objects); err != nil {
		return err
	}
	for _, f := range findings {
		if slices.Index(severities, string(f.Severity)) >= threshold {
			return cli.ErrNo
		}
	}
	return nil
}

// readPath reads a file, or every manifest in a folder.
func (c *checkCommand) readPath(name string) (objects []*manifest.Object, err error) {
	files, folder := []string{name}, false
	if info, statErr := os.Stat(name); name != "-" && statErr == nil && info.IsDir() {
		folder = true
		if files, err = manifestsIn(name); err != nil {
			return nil, err
		}
	}
	for _, file := range files {
		list, err := manifest.ReadFile(file, c.In)
		if err != nil && !(folder && errors.Is(err, manifest.ErrNoKind)) { // a folder may hold other documents
			return nil, err
		}
		objects = append(objects, list...)
	}
	return objects, nil
}

// checkObject checks one object, and with --dry-run=server also by a dry run. It does not
// send an object that cannot be decoded, because that has a finding already.
func (c *checkCommand) checkObject(ctx context.Context, o *manifest.Object) ([]jobcheck.Finding, error) {
	found := jobcheck.Check(o)
	if c.reader == nil || o.Incomplete {
		return found, nil
	}
	var err error
	switch {
	case o.Job != nil:
		_, found, err = c.ask(ctx, found, o, "jobs", o.Job.Namespace, o.JSON, false)
	case o.CronJob != nil:
		found, err = c.askCronJob(ctx, found, o)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: dry run of %s/%s: %w", o.File, o.Kind, o.Name(), err)
	}
	return found, nil
}

// askCronJob asks for the CronJob and then for its next run: the API server takes CronJobs
// whose Jobs it refuses.
func (c *checkCommand) askCronJob(ctx context.Context, found []jobcheck.Finding, o *manifest.Object) ([]jobcheck.Finding, error) {
	accepted, found, err := c.ask(ctx, found, o, "cronjobs", o.CronJob.Namespace, o.JSON, false)
	if err != nil || !accepted {
		return found, err
	}
	job, err := jobcheck.Run(o, now())
	if err != nil {
		return nil, err
	}
	_, found, err = c.ask(ctx, found, o, "jobs", o.CronJob.Namespace, job, true)
	return found, err
}

func (c *checkCommand) ask(ctx context.Context, found []jobcheck.Finding, o *manifest.Object, resource, namespace string, body []byte, ofRun bool) (accepted bool, _ []jobcheck.Finding, _ error) {
	answer := jobcheck.Answer{OfRun: ofRun}
	answer.Warnings, answer.Err = c.reader.DryRun(ctx, resource, namespace, body)
	found, err := jobcheck.AddAnswer(found, o, answer)
	return answer.Accepted(), found, err
}

func manifestsIn(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// checked counts what was checked.
func checked(objects []*manifest.Object) string {
	jobs, policies := 0, 0
	for _, o := range objects {
		switch {
		case o.JobPolicy != nil || (o.Incomplete && o.Kind == "JobPolicy"):
			policies++
		case o.Known() || o.Incomplete:
			jobs++
		}
	}
	text := fmt.Sprintf("Jobs and CronJobs: %d", jobs)
	if policies > 0 {
		text += fmt.Sprintf(", JobPolicies: %d", policies)
	}
	return text
}

func (c *checkCommand) print(findings []jobcheck.Finding, objects []*manifest.Object) error {
	if c.output.Format == "sarif" {
		o := cli.Output{Format: "json"}
		_, err := o.Machine(c.Out, sarifLog(findings))
		return err
	}
	if done, err := c.output.Machine(c.Out, map[string]any{"findings": findings}); done {
		return err
	}
	counts := map[jobcheck.Severity]int{}
	for _, f := range findings {
		counts[f.Severity]++
		path := cmp.Or(f.Path, "object")
		if c.output.Format == "wide" {
			path = f.Object + ": " + path
		}
		fmt.Fprintf(c.Out, "%s:%d: %s: %s: %s [%s]\n", f.File, f.Line, paintSeverity(c.Out, f.Severity), path, f.Text, f.Check)
	}
	_, err := fmt.Fprintf(c.Out, "%s; errors: %d, warnings: %d, notes: %d\n", checked(objects),
		counts[jobcheck.Error], counts[jobcheck.Warning], counts[jobcheck.Note])
	return err
}

func paintSeverity(w io.Writer, s jobcheck.Severity) string {
	switch s {
	case jobcheck.Error:
		return cli.Paint(w, cli.Bad, string(s))
	case jobcheck.Warning:
		return cli.Paint(w, cli.Notice, string(s))
	}
	return string(s)
}

// The parts of SARIF 2.1.0 that findings need.
type (
	sarif struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPlace `json:"physicalLocation"`
	}
	sarifPlace struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
		Region           sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
)

func sarifLog(findings []jobcheck.Finding) sarif {
	run := sarifRun{
		Tool:    sarifTool{sarifDriver{Name: "kubectl-jobpolicy", Version: buildinfo.Version()}},
		Results: []sarifResult{},
	}
	for _, c := range jobcheck.Checks() {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{c.Name, sarifText{c.About}})
	}
	for _, f := range findings {
		run.Results = append(run.Results, sarifResult{
			RuleID: f.Check, Level: string(f.Severity), Message: sarifText{f.Path + ": " + f.Text},
			Locations: []sarifLocation{{sarifPlace{sarifArtifact{strings.TrimPrefix(filepath.ToSlash(f.File), "./")}, sarifRegion{max(f.Line, 1)}}}},
		})
	}
	return sarif{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}}
}
