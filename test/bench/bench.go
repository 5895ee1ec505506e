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

// renewAfter is the number of pods in a scenario after which the next heat gets
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
	// Repeat is how often each scenario is played; figures are medians. 0: once.
	Repeat int
	// Commit names what is measured.
	Commit string
	// Progress receives lines for a person who waits.
	Progress func(line string)
}

// A Result is what one contender came to in one scenario.
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

// A runner is a benchmark under way.
type runner struct {
	Config
	plane *plane
	heats int
	begin time.Time
}

// Run plays all scenarios with all contenders in turn, and returns what they
// came to. An error says which heat failed, because something did not work or
// because its result is wrong; the others are played all the same.
func Run(ctx context.Context, cfg Config) ([]Result, error) {
	all, err := Scenarios(cfg.Size)
	if err != nil {
		return nil, err
	}
	r := &runner{Config: cfg, begin: time.Now()}
	var results []Result
	var errs []error
	for i, s := range all {
		if cfg.Scenarios != nil && !cfg.Scenarios.MatchString(s.Name) {
			continue
		}
		played, err := r.scenario(ctx, s, i)
		results = append(results, medians(played)...)
		errs = append(errs, err)
	}
	return results, errors.Join(append(errs, r.dropPlane())...)
}

// scenario plays a scenario with all contenders in turn, as often as is asked
// for, and begins with another contender each time.
func (r *runner) scenario(ctx context.Context, s *Scenario, first int) ([]Result, error) {
	var results []Result
	var errs []error
	for n := range max(1, r.Repeat) {
		for _, c := range inTurn(contenders(), first+n) {
			if r.Contenders != nil && !r.Contenders.MatchString(c.name) || s.statusesOnly && !c.writesStatus {
				continue
			}
			if ctx.Err() != nil {
				return results, errors.Join(append(errs, context.Cause(ctx))...)
			}
			result, err := r.heat(ctx, s, c)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s, %s: %w", s.Name, c.name, err))
				continue
			}
			results = append(results, *result)
		}
	}
	return results, errors.Join(errs...)
}

// inTurn lets another contender begin each time.
func inTurn(all []contender, i int) []contender {
	i %= len(all)
	return append(append([]contender(nil), all[i:]...), all[:i]...)
}

// heat runs one contender in one scenario. After an error the next one gets a
// new control plane: nobody knows what is left on this one.
func (r *runner) heat(ctx context.Context, s *Scenario, c contender) (*Result, error) {
	if err := r.needPlane(ctx); err != nil {
		return nil, err
	}
	r.heats++
	account := fmt.Sprintf("bench-%d", r.heats)
	h := &heat{
		plane: r.plane, scenario: s, contender: c, account: account, namespace: account, figures: Figures{},
		quiet: r.quiet(), profileDir: r.ProfileDir, say: r.throttled(fmt.Sprintf("%-22s %-13s ", s.Name, c.name)),
	}
	err := r.play(ctx, h)
	if err != nil || s.Pods > renewAfter {
		return r.result(h), errors.Join(err, r.dropPlane())
	}
	return r.result(h), nil
}

func (r *runner) play(ctx context.Context, h *heat) error {
	h.say("starting")
	kubeconfig, err := h.credentials(ctx, h.account)
	if err != nil {
		return err
	}
	if h.crew, err = h.contender.start(ctx, h.plane, kubeconfig, h.scenario); err != nil {
		return err
	}
	if err := h.run(ctx); err != nil {
		return errors.Join(fmt.Errorf("%w\n%s", err, h.crew.tail()), h.crew.stop())
	}
	if err := h.crew.stop(); err != nil {
		return err
	}
	r.line(fmt.Sprintf("%-22s %-13s done in %.1f s, counts verified", h.scenario.Name, h.contender.name, h.figures[Makespan]))
	if h.scenario.Pods > renewAfter {
		return nil
	}
	return h.clear(ctx, h.namespace)
}

func (r *runner) result(h *heat) *Result {
	s := h.scenario
	return &Result{
		Scenario: s.Name, Title: s.Title, Latency: s.Latency, Contender: h.contender.name, Size: r.Size, Commit: r.Commit,
		Pods: s.Pods, Runs: 1, Figures: h.figures, Calls: h.calls,
	}
}

// quiet is long enough for events that were held back, which are part of the
// figures. Where only counts matter, it is short.
func (r *runner) quiet() time.Duration {
	if r.Size == Tiny {
		return 100 * time.Millisecond
	}
	return time.Second
}

// needPlane starts a control plane if there is none, and lets the floor use it
// once, so that no contender is the first.
func (r *runner) needPlane(ctx context.Context) error {
	if r.plane != nil {
		return nil
	}
	dir, err := os.MkdirTemp(r.Dir, "plane-")
	if err != nil {
		return err
	}
	if r.plane, err = startPlane(ctx, dir, r.BinDir, r.throttled("")); err != nil {
		return err
	}
	warm := oneJob("Indexed", 300, 100, 0, 0)
	warm.Name = "warming up"
	r.heats++
	account := fmt.Sprintf("bench-%d", r.heats)
	all := contenders()
	return r.play(ctx, &heat{
		plane: r.plane, scenario: warm, contender: all[len(all)-1], account: account, namespace: account,
		figures: Figures{}, quiet: r.quiet(), say: r.throttled("warming up the control plane: "),
	})
}

func (r *runner) dropPlane() error {
	if r.plane == nil {
		return nil
	}
	p := r.plane
	r.plane = nil
	return p.stop()
}

// progressInterval is the time between two lines of progress.
const progressInterval = 5 * time.Second

// throttled passes a line on now and then, with the time since the start.
func (r *runner) throttled(prefix string) func(string, ...any) {
	var last time.Time
	return func(format string, args ...any) {
		if time.Since(last) < progressInterval {
			return
		}
		last = time.Now()
		r.line(prefix + fmt.Sprintf(format, args...))
	}
}

func (r *runner) line(text string) {
	if r.Progress != nil {
		r.Progress(fmt.Sprintf("%6.0fs  %s", time.Since(r.begin).Seconds(), strings.TrimSpace(text)))
	}
}
