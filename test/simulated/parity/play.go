package parity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/test/simulated/parity/virtual"
)

// The largest number of steps of a generated case.
const (
	maxNewSteps           = 7
	maxNewStepsInRestarts = 4
)

// errUnfit: a step names pods that do not exist.
var errUnfit = errors.New("the script does not fit the Job")

// A transcript is what one side showed of a case.
type transcript struct {
	moments []moment
	// err is why the play ended early, after these moments.
	err error
	// shapes are those of the Job and its pods, at the end.
	shapes []string
	// end is the outcome in one word.
	end string
	// wrong lists breaches of rules that hold for every controller.
	wrong []string
}

// A moment is a side at rest, after a line of steps.
type moment struct {
	line string
	// counts are how many pods each step of the line was about.
	counts []int
	// refused: the API server refused the line.
	refused bool
	view    view
}

// play plays a case in a bubble. The steps of a generated case are chosen meanwhile.
func (p player) play(t *testing.T, c *Case) *transcript {
	tr := &transcript{}
	who := "ours"
	if p.builtin {
		who = "built-in"
	}
	virtual.Bubble(t, fmt.Sprintf("%s, %s", c.Name, who), func() {
		ctx := context.Background()
		st, err := p.raise(ctx, c)
		if err != nil {
			tr.err = err
			return
		}
		tr.err = st.script(ctx, tr)
		tr.shapes, tr.end = st.shapes(), st.outcome()
		st.leave()
		tr.wrong = st.plane.Wrong()
		if refused := st.plane.Refused(); len(refused) > 0 && !p.builtin {
			tr.wrong = append(tr.wrong, "the API server refused a status: "+refused[0])
		}
		if err := st.engine.Err(); err != nil {
			tr.wrong = append(tr.wrong, "the engine refused a request: "+err.Error())
		}
	})
	return tr
}

func (s *side) kubelet(c *Case) kubelet { return kubelet{s, cmp.Or(c.Job, "job")} }

func (st *stage) script(ctx context.Context, tr *transcript) error {
	if st.c.Before != "" {
		if _, err := st.do(ctx, st.c.Before, facts{}); err != nil {
			return err
		}
		// Pods and Jobs reach a controller through different watches.
		if _, err := st.rest(false); err != nil {
			return err
		}
	}
	if err := st.actor(facts{}).createJob(ctx, st.c); err != nil {
		return fmt.Errorf("%w: %w", errUnfit, err)
	}
	v, err := st.rest(false)
	tr.moments = append(tr.moments, moment{view: v})
	for i := 0; err == nil; i++ {
		line := st.c.step(i, v.facts)
		if line == "" {
			break
		}
		if i+1 == st.pendingFrom {
			st.mu.Lock()
			st.pending = true
			st.mu.Unlock()
		}
		var m moment
		m, err = st.step(ctx, line, v.facts)
		if err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, line, err)
		}
		tr.moments, v = append(tr.moments, m), m.view
	}
	return err
}

// step returns the i-th step; a generated case chooses it now.
func (c *Case) step(i int, f facts) string {
	if i < len(c.Steps) {
		return c.Steps[i]
	}
	most := maxNewSteps
	if c.Restarts {
		most = maxNewStepsInRestarts
	}
	if c.next == nil || i >= most {
		return ""
	}
	line := c.next(f)
	if line != "" {
		c.Steps = append(c.Steps, line)
	}
	return line
}

func (st *stage) step(ctx context.Context, line string, before facts) (moment, error) {
	if strings.Contains(line, "hold") {
		st.mu.Lock()
		st.hold = true
		st.mu.Unlock()
	}
	m := moment{line: line}
	await := st.disturb()
	counts, err := st.do(ctx, line, before)
	await()
	switch {
	case apierrors.IsInvalid(err) && st.c.generated:
		m.refused = true // The step is impossible.
	case err != nil:
		return m, err
	}
	m.counts = counts
	m.view, err = st.rest(line == "wait")
	return m, err
}

func (st *stage) actor(before facts) *actor {
	return &actor{kubelet: st.kubelet(st.c), c: st.c, before: before, used: map[types.UID]bool{}, builtin: st.builtin}
}

// do does the steps of one line, directly after each other. If one of them stops the
// controller, it starts again at the end.
func (st *stage) do(ctx context.Context, line string, before facts) (counts []int, err error) {
	steps, err := parseLine(line)
	if err != nil {
		return nil, err
	}
	a := st.actor(before)
	defer func() {
		if a.down {
			st.end()
		}
	}()
	for _, s := range steps {
		n, err := a.do(ctx, s)
		if apierrors.IsInvalid(err) && s.try {
			n, err = -1, nil
		}
		if err != nil {
			return nil, err
		}
		if wanted := max(len(s.pods.indexes), s.pods.count); n < wanted && n >= 0 && !st.c.generated {
			return nil, fmt.Errorf("%s: there are only %d such pods: %w", line, n, errUnfit)
		}
		counts = append(counts, n)
		st.delay.upTo(5 * time.Millisecond)
	}
	return counts, nil
}

// outcome is the end in one word, for the table of coverage.
func (s *side) outcome() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.job == nil || s.job.DeletionTimestamp != nil {
		return "deleted"
	}
	for _, c := range s.job.Status.Conditions {
		if (c.Type == "Complete" || c.Type == "Failed") && c.Status == corev1.ConditionTrue {
			return string(c.Type) + "/" + c.Reason
		}
	}
	return "not finished"
}
