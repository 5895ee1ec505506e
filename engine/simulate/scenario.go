package simulate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The defaults of a scenario.
const (
	DefaultRuntime    = time.Minute
	DefaultStartDelay = time.Second
	DefaultStopDelay  = time.Second
	DefaultSpan       = 30 * 24 * time.Hour
	defaultContainer  = "main"
	// The API server's default of terminationGracePeriodSeconds.
	defaultGracePeriod = 30 * time.Second
)

// MaxPods is how many pods a play may create before it is stopped: a scenario
// that never ends would otherwise fill the memory. It is the engine's limit on the rows
// of a request, because all pods may end at once.
const MaxPods = 100_000

// defaultStart is when a play begins unless the scenario says otherwise. Only the
// times in the status show it.
var defaultStart = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// A Scenario describes a play.
type Scenario struct {
	// Job names the Job. Absent: default/job.
	Job *jobpolicyv1.JobRef
	// Spec is required. Play does not change it.
	Spec *jobpolicyv1.JobSpec
	// Settings of the caller. Absent: the engine's defaults.
	Settings *jobpolicyv1.Settings
	// Start is the wall time at which the play begins. Zero: 2026-01-01, 00:00 UTC.
	Start time.Time
	// Containers are those of each pod, in the order of the pod template; init containers
	// first. If only init containers are named, or none, there is one more, main.
	Containers []Container
	// PodDeadline is how long a pod may be active, from its creation on. Zero: for ever.
	PodDeadline time.Duration
	// GracePeriod is how long a container that is told to end may run on before it is
	// killed. Zero: 30 s; the kubelet gives at least 2 s.
	GracePeriod time.Duration

	// Scripts say what happens to certain pods. The first script that names a pod
	// counts.
	Scripts []Script
	// FailRate is the share of all other runs of a pod's first container that fail, 0 to 1.
	// Init containers succeed at once unless a script names them, sidecars run until they are
	// stopped, and further containers run as long as the first one and succeed.
	FailRate float64
	// FailCode is the exit code of runs that fail by FailRate. 0 means 1.
	FailCode int32
	// Runtime is how long a run takes, if its script does not say. Zero: 1 min.
	Runtime Runtime
	// Seed is the seed of everything that is drawn.
	Seed uint64

	// Changes are what the Job's user does.
	Changes []Change

	// QuotaUntil is until when a quota has no room for new pods. Zero: it always has.
	QuotaUntil time.Duration
	// NodeLost is when the node of all pods that exist then stops answering and is not Ready any more. Zero: never. NodeBack, which
	// is later, is when it is Ready again. Zero: never.
	NodeLost, NodeBack time.Duration

	// StartDelay is how long a pod is Pending. Zero: 1 s.
	StartDelay time.Duration
	// StopDelay is how long containers need to end when their pod is stopped; after
	// GracePeriod they are killed. Zero: 1 s.
	StopDelay time.Duration
	// Span is how long the play may last. Zero: 30 days.
	Span time.Duration
	// MaxPods is how many pods the play may create, and how often it may restart containers,
	// before it is stopped. Zero: the constant MaxPods, which is also the most.
	MaxPods int
	// Moments asks for Result.Moments.
	Moments bool
}

// A Runtime is a duration, drawn evenly from Mean less Spread to Mean plus Spread. Spread is at most
// Mean.
type Runtime struct {
	Mean, Spread time.Duration
}

// An Ending is how a run of a container ends.
type Ending int

const (
	// Succeeds: exit code 0.
	Succeeds Ending = iota
	// Fails: another exit code.
	Fails
	// Evicted: the pod fails with the condition DisruptionTarget, whatever its
	// restart policy.
	Evicted
	// Hangs: the container runs forever.
	Hangs
	// NeverStarts: the pod stays Pending, because an image cannot be pulled.
	NeverStarts
)

// An Outcome is one run of a container.
type Outcome struct {
	Ending Ending
	// ExitCode, 1 to 255, is used only with Fails.
	ExitCode int32
	// OutOfMemory: the container is OOMKilled. Used only with Fails.
	OutOfMemory bool
	// After is how long the container runs. Zero: drawn from Scenario.Runtime.
	After time.Duration
}

// A Script says what happens to certain pods.
type Script struct {
	// First and Last are indexes of an Indexed Job, or numbers of pods in the order of
	// creation, from 0. Both ends are included. Last below First: all pods.
	First, Last int32
	// Container is the container that the outcomes are of. Empty: the first one that is no
	// init container.
	Container string
	// Outcomes are those of the runs of an index, or of a pod, in order. The last one
	// applies to all further runs.
	Outcomes []Outcome
}

// A Change is what a user does to the Job at a time.
type Change struct {
	// At is the virtual time since the play began; 0 or more.
	At time.Duration
	// Suspend, Parallelism and Completions are new values; nil leaves one as it is.
	Suspend                  *bool
	Parallelism, Completions *int32
	// Delete asks for the Job's deletion. The play ends there.
	Delete bool
}

var errNoSpec = errors.New("spec: is required")

// completed is the scenario with its defaults, or what is wrong with it.
func (sc Scenario) completed() (Scenario, error) {
	if sc.Spec == nil {
		return sc, errNoSpec
	}
	if sc.Job == nil {
		sc.Job = &jobpolicyv1.JobRef{Namespace: "default", Name: "job"}
	}
	if sc.Start.IsZero() {
		sc.Start = defaultStart
	}
	if sc.first() == nil {
		sc.Containers = append(slices.Clip(sc.Containers), Container{Name: defaultContainer})
	}
	if sc.Runtime.Mean == 0 {
		sc.Runtime.Mean = DefaultRuntime
	}
	if sc.FailCode == 0 {
		sc.FailCode = 1
	}
	if sc.MaxPods == 0 {
		sc.MaxPods = MaxPods
	}
	for _, d := range []struct {
		value     *time.Duration
		byDefault time.Duration
	}{{&sc.StartDelay, DefaultStartDelay}, {&sc.StopDelay, DefaultStopDelay}, {&sc.Span, DefaultSpan}, {&sc.GracePeriod, defaultGracePeriod}} {
		if *d.value == 0 {
			*d.value = d.byDefault
		}
	}
	return sc, sc.check()
}

func (sc Scenario) check() error {
	if !(sc.FailRate >= 0 && sc.FailRate <= 1) {
		return fmt.Errorf("fail rate: must be from 0 to 1, is %v", sc.FailRate)
	}
	if sc.Runtime.Mean < 0 || sc.Runtime.Spread < 0 || sc.Runtime.Spread > sc.Runtime.Mean {
		return fmt.Errorf("runtime: must be a duration of 0 or more with a spread of at most that, is %s", sc.Runtime)
	}
	if sc.Runtime.Mean > math.MaxInt64-sc.Runtime.Spread {
		return errors.New("runtime: is too long")
	}
	if sc.MaxPods < 0 || sc.MaxPods > MaxPods {
		return fmt.Errorf("max pods: must be from 0 to %d, is %d", MaxPods, sc.MaxPods)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"start delay", sc.StartDelay},
		{"stop delay", sc.StopDelay},
		{"span", sc.Span},
		{"pod deadline", sc.PodDeadline},
		{"quota until", sc.QuotaUntil},
		{"node lost", sc.NodeLost},
		{"node back", sc.NodeBack},
	} {
		if d.value < 0 {
			return fmt.Errorf("%s: must be 0 or more, is %s", d.name, d.value)
		}
	}
	if err := sc.CheckNode(); err != nil {
		return fmt.Errorf("node back: %w", err)
	}
	for _, s := range sc.Scripts {
		if err := sc.checkScript(s); err != nil {
			return err
		}
	}
	return sc.checkChanges()
}

// CheckNode says what is wrong with NodeBack.
func (sc Scenario) CheckNode() error {
	switch {
	case sc.NodeBack > 0 && sc.NodeLost == 0:
		return fmt.Errorf("expected a time after the node was lost, got %s, but it never was", Clock(sc.NodeBack))
	case sc.NodeBack > 0 && sc.NodeBack <= sc.NodeLost:
		return fmt.Errorf("expected a time after the node was lost at %s, got %s", Clock(sc.NodeLost), Clock(sc.NodeBack))
	}
	return nil
}

func (sc Scenario) checkScript(s Script) error {
	i := slices.IndexFunc(sc.Containers, func(c Container) bool { return s.of(&c, sc.first()) })
	switch {
	case len(s.Outcomes) == 0:
		return fmt.Errorf("script of pod %s: needs an outcome", s.pods())
	case i < 0:
		return fmt.Errorf("script of pod %s: the pods have no container %q", s.pods(), s.Container)
	case s.Last >= s.First && sc.indexed() && sc.Spec.Completions != nil && s.First >= sc.maxCompletions():
		return fmt.Errorf("script of pod %s: the Job has the indexes 0 to %d", s.pods(), sc.maxCompletions()-1)
	case len(s.Outcomes) > 1 && !sc.indexed() && !sc.Containers[i].restartable(sc.Spec.GetRestartPolicy()):
		return fmt.Errorf("script of pod %s: has %d outcomes, but a pod of this Job runs once: it is neither Indexed nor restarted (OnFailure); "+
			"a retry is a pod with a number of its own", s.pods(), len(s.Outcomes))
	}
	return nil
}

// maxCompletions is the highest value of spec.completions at any time.
func (sc Scenario) maxCompletions() int32 {
	most := sc.Spec.GetCompletions()
	for _, c := range sc.Changes {
		if c.Completions != nil {
			most = max(most, *c.Completions)
		}
	}
	return most
}

func (sc Scenario) checkChanges() error {
	for _, c := range sc.Changes {
		for _, n := range []struct {
			name  string
			value *int32
		}{{"parallelism", c.Parallelism}, {"completions", c.Completions}} {
			if n.value != nil && *n.value < 0 {
				return fmt.Errorf("change at %s: %s must be 0 or more, is %d", c.At, n.name, *n.value)
			}
		}
		if c.At < 0 {
			return fmt.Errorf("change at %s: must be at 0 or later", c.At)
		}
		if c.Completions != nil && !sc.indexed() {
			return fmt.Errorf("change at %s: completions can be changed only for an Indexed Job", c.At)
		}
	}
	return nil
}

func (sc Scenario) indexed() bool {
	return sc.Spec.GetCompletionMode() == jobpolicyv1.CompletionMode_COMPLETION_MODE_INDEXED
}

func (s Script) names(key int32) bool {
	return s.Last < s.First || (key >= s.First && key <= s.Last)
}

// of says whether the script is about a container of a pod.
func (s Script) of(c, first *Container) bool {
	if s.Container == "" {
		return c.Name == first.Name
	}
	return c.Name == s.Container
}

// first is the first container that is no init container; nil if there is none.
func (sc *Scenario) first() *Container {
	if i := slices.IndexFunc(sc.Containers, func(c Container) bool { return !c.Init }); i >= 0 {
		return &sc.Containers[i]
	}
	return nil
}

// outcome is how a run of a container ends: the run-th of this index, or of this pod. last
// says that all further runs end like it.
func (sc *Scenario) outcome(key int32, c *Container, run int) (o Outcome, last bool) {
	i := slices.IndexFunc(sc.Scripts, func(s Script) bool { return s.names(key) && s.of(c, sc.first()) })
	if i < 0 {
		return sc.unscripted(key, c, run)
	}
	outcomes := sc.Scripts[i].Outcomes
	o = outcomes[min(run, len(outcomes)-1)]
	if o.After == 0 {
		o.After = sc.drawn(key, run).After
	}
	return o, run >= len(outcomes)-1
}

func (sc *Scenario) unscripted(key int32, c *Container, run int) (o Outcome, last bool) {
	first := sc.first()
	switch {
	case c.Name == first.Name:
		return sc.drawn(key, run), sc.FailRate == 0 || sc.FailRate == 1
	case c.sidecar():
		return Outcome{Ending: Hangs}, true
	case c.Init:
		return Outcome{}, true
	}
	beside, _ := sc.outcome(key, first, run)
	return Outcome{After: beside.After}, true
}

// drawn is how a run ends without a script.
func (sc *Scenario) drawn(key int32, run int) Outcome {
	o := Outcome{After: sc.Runtime.Mean}
	if spread := sc.Runtime.Spread; spread > 0 {
		o.After += time.Duration((2*draw(sc.Seed, key, run, 0) - 1) * float64(spread))
		o.After = o.After.Round(time.Millisecond)
	}
	if draw(sc.Seed, key, run, 1) < sc.FailRate {
		o.Ending, o.ExitCode = Fails, sc.FailCode
	}
	return o
}

// draw is a number from 0 to below 1. It depends on nothing but its arguments, so
// that what one pod draws does not depend on what others did before.
func draw(seed uint64, key int32, run, what int) float64 {
	x := seed
	for _, v := range []uint64{uint64(uint32(key)), uint64(run), uint64(what)} {
		x = mix(x ^ mix(v+1))
	}
	return float64(x>>11) / (1 << 53)
}

// mix spreads the bits of x: the output step of the generator SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
