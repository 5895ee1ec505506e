package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// renewAfter is the number of pods in a scenario after which the next run gets
// a new control plane: deleting them would take longer.
const renewAfter = 20_000

// Config says what to run.
type Config struct {
	// BinDir holds the executables of deploy/local/build.sh.
	BinDir string
	// Dir is for the files of control planes; it must exist.
	Dir  string
	Size Size
	// Scenarios and Contenders choose by name; nil: all.
	Scenarios, Contenders *regexp.Regexp
	// ProfileDir is where CPU profiles go; empty: none are taken.
	ProfileDir string
	// Repeat is how often each scenario is run; figures are medians. 0: once.
	Repeat int
	// Commit names the commit that is measured.
	Commit string
	// Progress receives lines for a person who waits; nil: nobody waits.
	Progress func(line string)
}

// A Result is what was measured of one contender in one scenario.
type Result struct {
	Scenario  string         `json:"scenario"`
	Title     string         `json:"title"`
	Latency   string         `json:"latency"`
	Contender string         `json:"contender"`
	Size      Size           `json:"size"`
	Commit    string         `json:"commit"`
	Pods      int            `json:"pods"`
	Runs      int            `json:"runs"`
	Figures   Figures        `json:"figures"`
	Calls     map[string]int `json:"calls"`
}

// A benchmark is a call of Run that is under way.
type benchmark struct {
	Config
	plane *plane
	runs  int
	begin time.Time
}

// Run runs all scenarios with all contenders in turn, and returns the results. The
// error names each run that failed or whose counts are wrong. A failed run does not
// stop the others.
func Run(ctx context.Context, cfg Config) ([]Result, error) {
	all, err := Scenarios(cfg.Size)
	if err != nil {
		return nil, err
	}
	b := &benchmark{Config: cfg, begin: time.Now()}
	var results []Result
	var errs []error
	for i, s := range all {
		if cfg.Scenarios != nil && !cfg.Scenarios.MatchString(s.Name) {
			continue
		}
		done, err := b.scenario(ctx, s, i)
		results = append(results, medians(done)...)
		errs = append(errs, err)
	}
	return results, errors.Join(append(errs, b.dropPlane())...)
}

// scenario runs a scenario with all contenders in turn, Repeat times, and begins
// with a different contender each time.
func (b *benchmark) scenario(ctx context.Context, s *Scenario, first int) ([]Result, error) {
	var results []Result
	var errs []error
	for n := range max(1, b.Repeat) {
		for _, c := range inTurn(contenders(), first+n) {
			if b.Contenders != nil && !b.Contenders.MatchString(c.name) || s.statusesOnly && !c.writesStatus || s.keep > 0 && !c.ours {
				continue
			}
			if ctx.Err() != nil {
				return results, errors.Join(append(errs, context.Cause(ctx))...)
			}
			result, err := b.measure(ctx, s, c)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s, %s: %w", s.Name, c.name, err))
				continue
			}
			results = append(results, *result)
		}
	}
	return results, errors.Join(errs...)
}

// inTurn rotates the contenders by i.
func inTurn(all []contender, i int) []contender {
	i %= len(all)
	return append(append([]contender(nil), all[i:]...), all[:i]...)
}

// measure runs one contender in one scenario. After an error the next run
// gets a new control plane, because this one may hold anything.
func (b *benchmark) measure(ctx context.Context, s *Scenario, c contender) (*Result, error) {
	if err := b.needPlane(ctx); err != nil {
		return nil, err
	}
	b.runs++
	account := fmt.Sprintf("bench-%d", b.runs)
	r := &run{
		plane: b.plane, scenario: s, contender: c, account: account, namespace: account, figures: Figures{},
		quiet: b.quiet(), profileDir: b.ProfileDir, say: b.throttled(fmt.Sprintf("%-22s %-13s ", s.Name, c.name)),
	}
	err := b.play(ctx, r)
	if err != nil || s.Pods > renewAfter {
		return b.result(r), errors.Join(err, b.dropPlane())
	}
	return b.result(r), nil
}

func (b *benchmark) play(ctx context.Context, r *run) error {
	r.say("starting")
	kubeconfig, err := r.credentials(ctx, r.account)
	if err != nil {
		return err
	}
	if r.processes, err = r.contender.start(ctx, r.plane, kubeconfig, r.scenario); err != nil {
		return err
	}
	if err := r.execute(ctx); err != nil {
		return errors.Join(fmt.Errorf("%w\n%s", err, r.processes.tail()), r.processes.stop())
	}
	if err := r.processes.stop(); err != nil {
		return err
	}
	b.line(fmt.Sprintf("%-22s %-13s done in %.1f s, counts verified", r.scenario.Name, r.contender.name, r.figures[Makespan]))
	if r.scenario.Pods > renewAfter {
		return nil
	}
	return r.clear(ctx, r.namespace)
}

func (b *benchmark) result(r *run) *Result {
	s := r.scenario
	return &Result{
		Scenario: s.Name, Title: s.Title, Latency: s.Latency, Contender: r.contender.name, Size: b.Size, Commit: b.Commit,
		Pods: s.Pods, Runs: 1, Figures: r.figures, Calls: r.calls,
	}
}

// quiet is how long a contender must send nothing before its run is over. It is long
// enough for delayed events, which are part of the figures, and short where only counts
// matter.
func (b *benchmark) quiet() time.Duration {
	if b.Size == Tiny {
		return 100 * time.Millisecond
	}
	return time.Second
}

// needPlane starts a control plane if there is none. The floor uses it once, so
// that no contender is the first to use it.
func (b *benchmark) needPlane(ctx context.Context) error {
	if b.plane != nil {
		return nil
	}
	dir, err := os.MkdirTemp(b.Dir, "plane-")
	if err != nil {
		return err
	}
	if b.plane, err = startPlane(ctx, dir, b.BinDir, b.throttled("")); err != nil {
		return err
	}
	warm := oneJob("Indexed", 300, 100, 0, 0)
	warm.Name = "warming up"
	b.runs++
	account := fmt.Sprintf("bench-%d", b.runs)
	all := contenders()
	return b.play(ctx, &run{
		plane: b.plane, scenario: warm, contender: all[len(all)-1], account: account, namespace: account,
		figures: Figures{}, quiet: b.quiet(), say: b.throttled("warming up the control plane: "),
	})
}

func (b *benchmark) dropPlane() error {
	if b.plane == nil {
		return nil
	}
	p := b.plane
	b.plane = nil
	return p.stop()
}

// progressInterval is the time between two lines of progress.
const progressInterval = 5 * time.Second

// throttled returns a function that passes on at most one line per progressInterval.
func (b *benchmark) throttled(prefix string) func(string, ...any) {
	var last time.Time
	return func(format string, args ...any) {
		if time.Since(last) < progressInterval {
			return
		}
		last = time.Now()
		b.line(prefix + fmt.Sprintf(format, args...))
	}
}

func (b *benchmark) line(text string) {
	if b.Progress != nil {
		b.Progress(fmt.Sprintf("%6.0fs  %s", time.Since(b.begin).Seconds(), strings.TrimSpace(text)))
	}
}
