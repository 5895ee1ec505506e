package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine/snapshot"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
)

func main() {
	engine := flag.String("engine", "dns:///localhost:8443", "the engine's `address`")
	certificates := flag.String("certificates", "tls", "the `folder` of ca.crt, tls.crt and tls.key")
	file := flag.String("job", "job.json", "the `file` of the Job")
	flag.Parse()
	runtime.LockOSThread() // Processes die with the thread that starts them: see start.
	j := load(*file)
	conn, err := jobpolicyv1grpc.Dial(*engine, *certificates)
	check(err)
	engineClient := jobpolicyv1grpc.NewPolicyServiceClient(conn)
	c := &controller{ask: jobpolicyv1grpc.Asker(engineClient), job: j, processes: map[string]*os.Process{}, ends: make(chan func())}
	check(c.run(context.Background()))
	fmt.Println("the Job is", j.outcome())
}

const (
	pending   = jobpolicyv1.PodPhase_POD_PHASE_PENDING
	running   = jobpolicyv1.PodPhase_POD_PHASE_RUNNING
	succeeded = jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED
	failed    = jobpolicyv1.PodPhase_POD_PHASE_FAILED
	// A signal ended the process, or nobody saw its end.
	noExitCode = -1
)

// A job is a Job with its tasks. One file holds all of it, so that writing the file is
// a transaction.
type job struct {
	file    string
	UID     string // No other Job ever has it.
	Command []string
	Spec    message[*jobpolicyv1.JobSpec]
	Status  message[*jobpolicyv1.JobStatus]
	Tasks   map[string]*task // By name, which is the UID, too. None is ever taken out.
}

// A task is a process that was started, or is about to be.
type task struct {
	Phase             jobpolicyv1.PodPhase
	Index             *int32
	Tracked, Deleting bool // Its end is not accounted for yet; it was asked to end.
	ExitCode          int
	Failures, Ignored int32 // Of its index, before it.
	Created, Finished time.Time
}

// A controller runs one Job.
type controller struct {
	ask       answer.Ask
	job       *job
	processes map[string]*os.Process
	ends      chan func() // Each takes in that a process has ended.
}

// run runs the Job to its end: count, ask, carry out, wait.
func (c *controller) run(ctx context.Context) error {
	for _, t := range c.job.Tasks {
		if t.Phase == running { // The process ended with the program that started it.
			t.end(noExitCode)
		}
	}
	for c.job.outcome() == "" {
		decision, err := answer.Decide(ctx, c.ask, c.request)
		if err != nil { // Nothing is lost: the processes run on.
			fmt.Println("ask again:", err)
			c.wait(time.Now().Add(time.Second))
			continue
		}
		fmt.Println(decision.GetExplanation().GetSummary())
		if err := c.carryOut(decision); err != nil {
			return err
		}
		if next := answer.Next(decision, time.Now()); c.job.outcome() == "" {
			c.wait(next)
		}
	}
	return nil
}

// request counts the tasks. active: the running ones are listed, too.
func (c *controller) request(active bool) (*jobpolicyv1.DecideJobRequest, error) {
	request := snapshot.Request(c.job.Spec.m, c.job.Status.m, c.job.pods(), snapshot.Options{ActivePods: active})
	request.Job = &jobpolicyv1.JobRef{Uid: []byte(c.job.UID), Name: "job"}
	return request, nil
}

// carryOut writes what is decided in one transaction, and then makes it so.
func (c *controller) carryOut(decision *jobpolicyv1.DecideJobResponse) error {
	c.job.create(decision.GetCreate())
	for _, d := range decision.GetDelete() {
		t := c.job.Tasks[string(d.GetUid())]
		t.Deleting, t.Tracked = true, t.Tracked && !d.GetReleaseFirst()
	}
	if decision.GetStatus() != nil {
		c.job.Status.m = decision.GetStatus()
	}
	for _, uid := range decision.GetRelease() {
		c.job.Tasks[string(uid)].Tracked = false
	}
	if err := c.job.save(); err != nil {
		return err
	}
	for name, t := range c.job.Tasks {
		switch {
		case t.Phase == pending && t.Deleting:
			t.end(noExitCode)
		case t.Phase == pending:
			c.start(name, t)
		case t.Phase == running && t.Deleting:
			_ = c.processes[name].Signal(syscall.SIGTERM) // It may have ended already.
		}
	}
	return nil
}

// create adds tasks, to be started once the file says that they are there.
func (j *job) create(create *jobpolicyv1.CreatePods) {
	for _, p := range answer.NewPods(create) {
		j.Tasks[fmt.Sprintf("task-%d", len(j.Tasks))] = &task{
			Phase: pending, Tracked: true, Created: time.Now(),
			Index: p.Index, Failures: p.Failures, Ignored: p.IgnoredFailures,
		}
	}
}

// start starts the process of a task. It dies with this program.
func (c *controller) start(name string, t *task) {
	cmd := exec.Command(c.job.Command[0], c.job.Command[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Env = append(os.Environ(), "TASK="+name)
	if t.Index != nil {
		cmd.Env = append(cmd.Env, fmt.Sprint("INDEX=", *t.Index))
	}
	if err := cmd.Start(); err != nil {
		fmt.Println(name, err)
		t.end(noExitCode)
		return
	}
	t.Phase, c.processes[name] = running, cmd.Process
	go func() {
		_ = cmd.Wait() // The exit code says how it ended.
		c.ends <- func() { t.end(cmd.ProcessState.ExitCode()) }
	}()
}

// wait waits for the end of a process, or until a time; zero: never.
func (c *controller) wait(until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		due = time.After(time.Until(until))
	}
	select {
	case takeIn := <-c.ends:
		takeIn()
	case <-due:
	}
}

// end takes in how a process has ended. The next transaction writes it.
func (t *task) end(code int) {
	t.Phase, t.Finished, t.ExitCode = succeeded, time.Now(), code
	if code != 0 {
		t.Phase = failed
	}
}

func (j *job) pods() (pods []snapshot.Pod) {
	for name, t := range j.Tasks {
		p := snapshot.Pod{
			UID: []byte(name), Name: name, Phase: t.Phase, Index: t.Index, Tracked: t.Tracked, Deleting: t.Deleting,
			Created: t.Created, Finished: t.Finished, IndexFailures: t.Failures, IndexIgnoredFailures: t.Ignored,
		}
		if t.ExitCode != 0 {
			p.Exits = []*jobpolicyv1.ContainerExit{{ContainerName: "process", ExitCode: int32(t.ExitCode)}}
		}
		pods = append(pods, p)
	}
	return pods
}

// outcome is Complete or Failed, or nothing before the Job has ended.
func (j *job) outcome() string { return answer.Finished(j.Status.m).GetType() }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// load reads the file of a Job.
func load(file string) *job {
	j := &job{file: file, Tasks: map[string]*task{}}
	j.Spec.m, j.Status.m = &jobpolicyv1.JobSpec{}, &jobpolicyv1.JobStatus{}
	data, err := os.ReadFile(file)
	check(err)
	check(json.Unmarshal(data, j))
	if len(j.Command) == 0 {
		check(errors.New("the file of the Job has no command"))
	}
	if j.UID == "" { // The Job is new. The first transaction writes it.
		j.UID = rand.Text()
	}
	return j
}

// save writes the whole file, or leaves it as it is.
func (j *job) save() error {
	data, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(j.file+".next", data, 0o644); err != nil {
		return err
	}
	return os.Rename(j.file+".next", j.file)
}

// A message of the contract stands in the file as the contract's JSON.
type message[M proto.Message] struct{ m M }

func (m message[M]) MarshalJSON() ([]byte, error)    { return protojson.Marshal(m.m) }
func (m message[M]) UnmarshalJSON(data []byte) error { return protojson.Unmarshal(data, m.m) }
