// Package simulation is the command simulate: it plays the Jobs of a file, or of a cluster,
// in virtual time. It imports no client of Kubernetes, so that a program that has only this
// command builds fast.
package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/engine/simulate"
	"jobpolicy.dev/services/internal/cli"
	"jobpolicy.dev/services/internal/jobcheck"
	"jobpolicy.dev/services/internal/manifest"
	"jobpolicy.dev/services/internal/playground"
)

const simulateLong = `Simulates a Job in virtual time with the policy engine, and shows what happens to it.
Needs no cluster. A pod succeeds after --runtime, unless --pod or --fail-rate says
otherwise; the same flags always give the same result.

--pod PODS[/CONTAINER]:OUTCOME[@DURATION][,OUTCOME…] sets the outcomes of certain pods. PODS is an
index of an Indexed Job, else the number of a pod in the order of creation, from 0; or a
range such as 0-4, or * for all. CONTAINER is a container or init container; without it,
the first container is meant. Several outcomes are those of the attempts in order (of an
index, or of a container that is restarted in its pod); the last one stands for all further
ones. An OUTCOME is

  succeed          the container ends with exit code 0
  fail, fail(42)   it ends with exit code 1, or 42
  oom              it is killed because its memory runs out (exit code 137, OOMKilled)
  evict            the pod fails with the condition DisruptionTarget, as by a drain
  hang             the container runs for ever
  stuck            the pod never starts, as with an image that cannot be pulled`

const simulateExample = `  # A tenth of all pods fail; which ones follows from the seed.
  kubectl jobpolicy simulate -f job.yaml --runtime 5m±1m --fail-rate 0.1 --seed 1

  # The first attempt of index 3 ends with exit code 42 after 30 s.
  kubectl jobpolicy simulate -f job.yaml --pod '3:fail(42)@30s,succeed'

  # The init container setup fails in every pod.
  kubectl jobpolicy simulate -f job.yaml --pod '*/setup:fail'

  # How long does it take, and how often does it fail?
  kubectl jobpolicy simulate -f job.yaml --runtime 5m±1m --fail-rate 0.1 --runs 1000`

// Jobs reads Jobs of a cluster.
type Jobs interface {
	// AddFlags adds the flags that say which cluster.
	AddFlags(fs *pflag.FlagSet)
	// Complete completes job/NAME.
	Complete(cmd *cobra.Command, args []string, text string) ([]cobra.Completion, cobra.ShellCompDirective)
	// Job reads the Job of an argument job/NAME.
	Job(ctx context.Context, arg string) (*batchv1.Job, error)
}

// simulation is the command line of simulate.
type simulation struct {
	cli.IO
	files    []string
	from     string
	cluster  Jobs
	runs     int
	output   *cli.Output
	scenario simulate.Scenario
	suspend  time.Duration
	resume   time.Duration
	delete   time.Duration
}

// New returns the command. If cluster is nil, it has no flag --from.
func New(streams cli.IO, cluster Jobs) *cobra.Command {
	s := &simulation{IO: streams, cluster: cluster}
	cmd := &cobra.Command{
		Use: "simulate -f FILE", Short: "Simulate a Job in virtual time, with the failures that you choose", Long: simulateLong,
		Example: simulateExample, Args: cli.FileOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context()) },
	}
	s.addFlags(cmd.Flags())
	s.output = cli.AddOutput(cmd, "wide")
	if cluster != nil {
		cmd.Use += " | --from job/NAME"
		cluster.AddFlags(cmd.Flags())
		_ = cmd.RegisterFlagCompletionFunc("from", cluster.Complete)
	}
	return cmd
}

func (s *simulation) addFlags(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringArrayVarP(&s.files, "filename", "f", nil, "A `file` with the Job, or with a CronJob whose Job is simulated, in YAML or JSON; - is standard input. May be repeated, also for the JobPolicy that it names.")
	if s.cluster != nil {
		fs.StringVar(&s.from, "from", "", "A Job of the cluster, as `job/NAME`. It is simulated from its creation.")
	}
	fs.Var(cli.List(&s.scenario.Scripts, simulate.ParseScript), "pod", "Outcomes of certain pods, such as `0:fail(42)@30s`. May be repeated; the first flag that names a pod applies.")
	fs.Var(cli.Value(&s.scenario.FailRate, parseRate), "fail-rate", "Share of the other attempts of the first container that fail, from 0 to 1.")
	fs.Var(cli.Value(&s.scenario.FailCode, parseExitCode), "fail-code", "`Exit code` of the attempts that fail because of --fail-rate. Default: 1.")
	fs.Uint64Var(&s.scenario.Seed, "seed", 1, "`Seed` of the random numbers.")
	fs.Var(cli.Value(&s.scenario.Runtime, simulate.ParseRuntime), "runtime", "How long a container runs: 5m, or `5m±1m` to draw from 4 to 6 minutes. Default: 1m.")
	fs.Var(cli.Value(&s.scenario.StartDelay, cli.ParseDuration), "start-delay", "How long a pod is Pending. Default: 1s.")
	fs.Var(cli.Value(&s.scenario.StopDelay, cli.ParseDuration), "stop-delay", "How long the containers of a pod that is stopped take to end; after the pod's grace period they are killed. Default: 1s.")
	fs.Var(cli.Value(&s.scenario.QuotaUntil, cli.ParseDuration), "quota-until", "A quota refuses all new pods until this `time`.")
	fs.Var(cli.Value(&s.scenario.NodeLost, cli.ParseDuration), "node-lost-at", "The node of all pods that are there at this `time` is lost: it is not Ready, and nobody knows what they do. After 5m they are deleted.")
	fs.Var(cli.Value(&s.scenario.NodeBack, cli.ParseDuration), "node-back-at", "The lost node is Ready again at this `time`.")
	fs.Var(cli.Value(&s.suspend, cli.ParseDuration), "suspend-at", "Suspend the Job at this `time`.")
	fs.Var(cli.Value(&s.resume, cli.ParseDuration), "resume-at", "Resume the Job at this `time`.")
	fs.Var(cli.Value(&s.delete, cli.ParseDuration), "delete-at", "Delete the Job at this `time`; the simulation ends there.")
	fs.Var(cli.List(&s.scenario.Changes, simulate.ParseScale), "scale", "Change the Job's size: `5@30s` sets parallelism, parallelism=5,completions=5@30s both. May be repeated.")
	fs.Var(cli.Value(&s.scenario.Span, cli.ParseDuration), "span", "How long the simulation may last, in virtual time. Default: 720h (30 days).")
	fs.IntVar(&s.runs, "runs", 1, "`Number` of simulations, each with the next seed. With more than 1, shows how the results are distributed.")
}

func (s *simulation) run(ctx context.Context) error {
	if s.cluster == nil && len(s.files) == 0 {
		return cli.Usagef("--filename: is required: the file with the Job (- is standard input)")
	}
	if (len(s.files) == 0) == (s.from == "") {
		return cli.Usagef("expected one of -f FILE, the file with the Job (- is standard input), and --from job/NAME, a Job of the cluster")
	}
	if err := s.scenario.CheckNode(); err != nil {
		return cli.Usagef("--node-back-at: %w", err)
	}
	if s.runs < 1 || s.runs > 1_000_000 {
		return cli.Usagef("--runs: expected a number from 1 to 1000000, got %d", s.runs)
	}
	s.addChanges()
	jobs, err := s.jobs(ctx)
	if err != nil {
		return err
	}
	for i, job := range jobs {
		s.output.Separate(s.Out, i)
		if err := s.play(job); err != nil {
			return err
		}
	}
	return nil
}

func (s *simulation) jobs(ctx context.Context) ([]*batchv1.Job, error) {
	if s.from == "" {
		return jobsOf(s.files, s.In)
	}
	job, err := s.cluster.Job(ctx, s.from)
	if err != nil {
		return nil, err
	}
	job.DeletionTimestamp = nil // it is played from the beginning
	return []*batchv1.Job{job}, nil
}

func (s *simulation) addChanges() {
	suspend, resume := true, false
	for _, c := range []struct {
		at     time.Duration
		change simulate.Change
	}{
		{s.suspend, simulate.Change{Suspend: &suspend}},
		{s.resume, simulate.Change{Suspend: &resume}},
		{s.delete, simulate.Change{Delete: true}},
	} {
		if c.at > 0 {
			c.change.At = c.at
			s.scenario.Changes = append(s.scenario.Changes, c.change)
		}
	}
}

// jobsOf reads the Jobs of files, and makes a Job from each CronJob.
func jobsOf(files []string, stdin io.Reader) ([]*batchv1.Job, error) {
	objects, err := manifest.ReadFiles(files, stdin)
	if err != nil {
		return nil, err
	}
	var jobs []*batchv1.Job
	for _, o := range objects {
		for _, p := range o.Problems {
			return nil, fmt.Errorf("%s:%d: %s: %s", o.File, p.Line, p.Path, p.Text)
		}
		switch {
		case o.Job != nil:
			jobs = append(jobs, o.Job)
		case o.CronJob != nil:
			jobs = append(jobs, playground.JobOf(o.CronJob))
		}
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("%s: expected a Job or CronJob of batch/v1, found none", strings.Join(files, ", "))
	}
	return jobs, nil
}

func (s *simulation) play(job *batchv1.Job) error {
	sc, err := playground.Scenario(job, s.scenario)
	if err != nil {
		return err
	}
	if s.runs > 1 {
		d, err := simulate.Repeat(sc, s.runs)
		if err != nil {
			return jobcheck.InManifest(err)
		}
		return s.printDistribution(sc.Job.GetName(), d)
	}
	r, err := simulate.Play(sc)
	if err != nil {
		return jobcheck.InManifest(err)
	}
	return s.printResult(sc.Job.GetName(), r)
}

func parseRate(text string) (float64, error) {
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || !(rate >= 0 && rate <= 1) {
		return 0, errors.New("expected a share from 0 to 1, such as 0.1")
	}
	return rate, nil
}

func parseExitCode(text string) (int32, error) {
	code, err := strconv.ParseInt(text, 10, 32)
	if err != nil || code < 1 || code > 255 {
		return 0, errors.New("expected an exit code from 1 to 255")
	}
	return int32(code), nil
}
