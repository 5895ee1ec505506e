package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	gocmp "github.com/google/go-cmp/cmp"
)

// How long to wait. The built-in controller gathers events for a second and
// delays a new pod by 10 s after a failure, 20 s after the second in a row.
const (
	pollPeriod = 150 * time.Millisecond
	patience   = 80 * time.Second
	// A controller that was restarted fills its caches first.
	patienceInRestarts = 3 * time.Minute
	// A loaded machine may be still for a while with work to do.
	settleRestless = 12 * time.Second
	// Outages that followed each other more closely would leave no time to rest.
	betweenOutages   = 4 * time.Second
	settleInRestarts = 3 * time.Second
	// From about this many on, the recorder drops events on one object.
	maxEvents = 20
	// How many steps a generated case has at most.
	maxNewSteps           = 7
	maxNewStepsInRestarts = 4
)

// errUnfit says that a step speaks of pods that neither side has.
var errUnfit = errors.New("the script does not fit the Job")

// An oracle compares the two sides.
type oracle struct {
	builtin, ours *side
	// settle is how long nothing may happen for a side to be at rest.
	settle time.Duration
	// logf tells at once what does not agree: a run may take hours.
	logf func(format string, args ...any)
}

// A result is what became of a case.
type result struct {
	c *Case
	// problem is empty if the sides agree.
	problem string
	// unfit: the problem is the script's, not that of a side.
	unfit bool
	// parted is where the sides came to rest with different views, if that is all
	// that is wrong.
	parted *parting
	// race is the problem of an earlier play, if it was one (see races.go).
	race string
	// known are the deliberate differences that were seen.
	known []string
	// shown is what the built-in side showed, by when.
	shown map[string][]string
	end   string
	took  time.Duration
}

// A run is a case under way.
type run struct {
	oracle
	c         *Case
	namespace string
	hold      bool
	// loose: what the controllers did before the Job was gone was a race.
	// orphaning: so was what they did before the pods were orphans. deleting:
	// whether the Job is told to have finished before it goes is one, too.
	loose, orphaning, deleting bool
	known                      map[string]bool
	shown                      map[string][]string
}

// play runs one case on both sides in a namespace of its own.
func (o oracle) play(ctx context.Context, c *Case, namespace string) result {
	started := time.Now()
	r := &run{oracle: o, c: c, namespace: namespace, known: map[string]bool{}, shown: map[string][]string{}}
	problem := ""
	err := r.script(ctx)
	parted, _ := errors.AsType[*parting](err)
	if err != nil {
		problem = err.Error()
	}
	if refused := r.refused(); refused != "" {
		problem, parted = strings.TrimSpace(problem+"\n  "+refused), nil
	}
	res := result{c: c, problem: problem, unfit: errors.Is(err, errUnfit), parted: parted, shown: r.shown, end: r.end(), took: time.Since(started)}
	for name := range r.known {
		res.known = append(res.known, name)
	}
	slices.Sort(res.known)
	if problem == "" {
		go o.builtin.forget(ctx, namespace)
		go o.ours.forget(ctx, namespace)
	}
	return res
}

// refused says which of our status writes the API server refused.
func (r *run) refused() string {
	refusals, err := r.ours.audit.refusals(r.namespace)
	if err != nil {
		return err.Error()
	}
	if len(refusals) == 0 {
		return ""
	}
	return "the API server refused a status: " + refusals[0]
}

func (r *run) sides() []*side { return []*side{r.builtin, r.ours} }

func (r *run) kubelet(s *side) kubelet { return kubelet{s, r.namespace, cmp.Or(r.c.Job, "job")} }

// both does something on both sides at the same time.
func (r *run) both(do func(i int, s *side) error) error {
	errs := make(chan error, 2)
	for i, s := range r.sides() {
		go func() {
			err := do(i, s)
			if err != nil {
				err = fmt.Errorf("%s: %w", s.name, err)
			}
			errs <- err
		}()
	}
	first, second := <-errs, <-errs
	if apierrors.IsInvalid(first) != apierrors.IsInvalid(second) {
		return fmt.Errorf("refused by one side only: %v; %v", first, second)
	}
	return cmp.Or(first, second)
}

func (r *run) script(ctx context.Context) error {
	err := r.both(func(_ int, s *side) error {
		_, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if r.c.Before != "" {
			if _, err := r.line(ctx, s, r.c.Before, facts{}); err != nil {
				return err
			}
			// Pods and Jobs come to a controller on different ways.
			time.Sleep(r.settle)
		}
		return r.kubelet(s).createJob(ctx, r.c)
	})
	if apierrors.IsInvalid(err) {
		err = fmt.Errorf("%w: %w", errUnfit, err)
	}
	if err != nil {
		return err
	}
	views, err := r.rest(ctx, "the Job is created", false)
	// A case ends where the sides part deliberately: what comes then is not
	// comparable.
	for i := 0; err == nil && len(r.known) == 0; i++ {
		line := r.nextStep(i, views[0].facts)
		if line == "" {
			break
		}
		views, err = r.step(ctx, i, line, views)
	}
	if err != nil {
		return err
	}
	if r.loose {
		return nil
	}
	if diff := gocmp.Diff(r.builtin.shapes(r.namespace), r.ours.shapes(r.namespace)); diff != "" {
		return fmt.Errorf("shape of the Job and its pods (-built-in +ours):\n%s", diff)
	}
	return nil
}

// nextStep returns the i-th step; a generated case grows while it runs.
func (r *run) nextStep(i int, f facts) string {
	if i < len(r.c.Steps) {
		return r.c.Steps[i]
	}
	most := maxNewSteps
	if r.c.Restarts {
		most = maxNewStepsInRestarts
	}
	if r.c.next == nil || i >= most {
		return ""
	}
	line := r.c.next(f)
	if line != "" {
		r.c.Steps = append(r.c.Steps, line)
	}
	return line
}

func (r *run) step(ctx context.Context, i int, line string, before [2]view) ([2]view, error) {
	if strings.HasPrefix(line, "hold") {
		r.hold = true
	}
	r.deleting = r.deleting || strings.Contains(line, "delete")
	r.orphaning = r.orphaning || strings.Contains(line, "delete Orphan")
	r.loose = r.loose || strings.Contains(line, "delete") && strings.Contains(line, "&")
	if strings.Contains(line, "crash") {
		for _, s := range r.sides() {
			s.outage.await(betweenOutages)
		}
	}
	counts := [2][]int{}
	err := r.both(func(i int, s *side) (err error) {
		counts[i], err = r.line(ctx, s, line, before[i].facts)
		return err
	})
	if apierrors.IsInvalid(err) && r.c.next != nil {
		// Refused on both sides: a step that cannot be.
		return r.rest(ctx, fmt.Sprintf("after step %d (%s, refused)", i+1, line), false)
	}
	if err != nil {
		return before, fmt.Errorf("step %d (%s): %w", i+1, line, err)
	}
	if !slices.Equal(counts[0], counts[1]) {
		return before, fmt.Errorf("step %d (%s): there are %d such pods on the built-in side, %d on ours", i+1, line, counts[0], counts[1])
	}
	return r.rest(ctx, fmt.Sprintf("after step %d (%s)", i+1, line), line == "wait")
}

// line does the steps of one line on one side, one right after the other. If
// one of them was that the controller goes down, it comes back in the end.
func (r *run) line(ctx context.Context, s *side, line string, before facts) (counts []int, err error) {
	steps, err := parseLine(line)
	if err != nil {
		return nil, err
	}
	a := &actor{kubelet: r.kubelet(s), c: r.c, before: before, used: map[types.UID]bool{}}
	defer func() {
		if a.down {
			err = errors.Join(err, s.outage.end(ctx))
		}
	}()
	for _, st := range steps {
		n, err := a.do(ctx, st)
		if apierrors.IsInvalid(err) && st.try {
			n, err = -1, nil
		}
		if err != nil {
			return nil, err
		}
		if wanted := max(len(st.pods.indexes), st.pods.count); n < wanted && n >= 0 {
			return nil, fmt.Errorf("%s: there are only %d such pods: %w", line, n, errUnfit)
		}
		counts = append(counts, n)
	}
	return counts, nil
}

// end is the outcome in one word, for the table of what was covered.
func (r *run) end() string {
	r.builtin.mu.Lock()
	defer r.builtin.mu.Unlock()
	job := r.builtin.scene(r.namespace).job
	if job == nil || job.DeletionTimestamp != nil {
		return "deleted"
	}
	for _, c := range job.Status.Conditions {
		if (c.Type == "Complete" || c.Type == "Failed") && c.Status == corev1.ConditionTrue {
			return string(c.Type) + "/" + c.Reason
		}
	}
	return "not finished"
}
