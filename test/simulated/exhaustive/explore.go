package exhaustive

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"jobpolicy.dev/test/kit/ledger"
)

// Result is what was explored.
type Result struct {
	States, Steps, Rests int
	// Deepest is the number of steps of the longest run.
	Deepest int
	// All: there is no other state within the bounds of the Scope.
	All      bool
	Took     time.Duration
	Problems []string
	// History leads to the problems.
	History []string
}

// An Explorer tries all steps in every state.
type Explorer struct {
	// Limit is the largest number of states.
	Limit int
	// Rest is after how many new states one is followed without faults until nothing happens any more.
	Rest int
	// Tell is called now and then.
	Tell func(Result)

	keeper keeper
	known  map[uint64]struct{}
	path   []move
	began  time.Time
	result Result
	found  *world
}

// Explore explores a Scope, depth first.
func (x *Explorer) Explore(s *Scope) Result {
	x.keeper.seed, x.known, x.began = maphash.MakeSeed(), map[uint64]struct{}{}, time.Now()
	x.result = Result{All: true}
	w := s.newWorld()
	x.isNew(w)
	x.visit(w)
	x.result.Took = time.Since(x.began)
	if x.found != nil {
		if shorter := x.shortest(s); shorter != nil {
			x.path = shorter
		}
		x.result.History = x.history(s)
	}
	return x.result
}

// most is how many states are searched for a shorter way to a problem.
const most = 400_000

// A way is a state, and the step that led to it.
type way struct {
	world *world
	step  move
	from  *way
}

// shortest searches for any problem breadth first; nil: there is none among the first states.
func (x *Explorer) shortest(s *Scope) []move {
	x.known, x.Tell = map[uint64]struct{}{}, nil
	states := x.result.States
	defer func() { x.result.States = states }()
	for queue := []*way{{world: s.newWorld()}}; len(queue) > 0 && len(x.known) < most; queue = queue[1:] {
		from := queue[0]
		for _, m := range from.world.moves() {
			next := &way{from.world.after(m), m, from}
			if !x.isNew(next.world) && len(next.world.problems) == 0 {
				continue
			}
			if len(next.world.problems) > 0 {
				x.result.Problems = next.world.problems
				return next.steps()
			}
			queue = append(queue, next)
		}
	}
	return nil
}

func (y *way) steps() []move {
	if y.from == nil {
		return nil
	}
	return append(y.from.steps(), y.step)
}

// isNew reports whether a state was not known yet, and enters it.
func (x *Explorer) isNew(w *world) bool {
	key := x.keeper.of(w)
	if _, ok := x.known[key]; ok {
		return false
	}
	x.known[key] = struct{}{}
	x.result.States++
	if x.Tell != nil && x.result.States%250_000 == 0 {
		soFar := x.result
		soFar.All, soFar.Took = false, time.Since(x.began)
		x.Tell(soFar)
	}
	return true
}

// visit explores what follows a state. It returns false to end.
func (x *Explorer) visit(w *world) bool {
	x.result.Deepest = max(x.result.Deepest, len(x.path))
	moves := w.moves()
	if len(w.problems) > 0 {
		return x.broken(w)
	}
	first := x.result.States // Which step comes first differs, so that the first states are of all kinds.
	for i := range moves {
		m := moves[(first+i)%len(moves)]
		next := w.after(m)
		x.result.Steps++
		x.path = append(x.path, m)
		if len(next.problems) > 0 {
			return x.broken(next)
		}
		if x.isNew(next) && !x.goOn(next) {
			return false
		}
		x.path = x.path[:len(x.path)-1]
	}
	return true
}

func (x *Explorer) goOn(w *world) bool {
	if x.result.States >= x.Limit {
		x.result.All = false
		return false
	}
	if x.Rest > 0 && x.result.States%x.Rest == 0 {
		if rest := x.rest(w); len(rest.problems) > 0 {
			return x.broken(rest)
		}
	}
	return x.visit(w)
}

func (x *Explorer) broken(w *world) bool {
	x.found, x.result.All, x.result.Problems = w, false, w.problems
	return false
}

// mostSteps is how many steps a run without faults may take until it rests.
const mostSteps = 500

// rest follows a state without faults. Its steps become part of the path if it shows a problem.
func (x *Explorer) rest(w *world) *world {
	from := len(x.path)
	x.result.Rests++
	for range mostSteps {
		m, ok, cut := w.fairMove()
		if cut {
			x.path = x.path[:from]
			return w
		}
		if !ok {
			w.judgeRest()
			break
		}
		w = w.after(m)
		x.path = append(x.path, m)
		if len(w.problems) > 0 {
			return w
		}
	}
	if len(x.path)-from == mostSteps {
		w.problem("liveness: after %d steps without faults there are still more", mostSteps)
	}
	if len(w.problems) == 0 {
		x.path = x.path[:from]
	}
	return w
}

// fairMove is the next step of a run without faults: what executors can do, then what else can happen. cut: the
// bound of pods ends the run.
func (w *world) fairMove() (_ move, ok, cut bool) {
	for _, m := range w.moves() {
		if !m.fault() {
			return m, true, false
		}
	}
	for _, x := range w.executors[:w.scope.Executors] {
		if x.call == nil && len(x.todo) > 0 {
			return move{}, false, true
		}
	}
	return move{}, false, false
}

// history tells the steps that led to a problem, with the state after each that changed something in the cluster.
func (x *Explorer) history(s *Scope) (lines []string) {
	w := s.newWorld()
	for i, m := range x.path {
		line := fmt.Sprintf("%3d %s", i+1, m)
		if m.what == sends && m.who >= 0 {
			line += "; " + w.nextCall(m.who)
		}
		next := w.after(m)
		if next.rv != w.rv {
			line += "\n      " + next.String()
		}
		lines, w = append(lines, line), next
	}
	return lines
}

var callNames = [...]string{"GET Job", "LIST pods", "create a pod", "delete pod", "write the status", "release pod"}

func (w *world) nextCall(e int) string {
	x := w.executors[e]
	next := x.todo
	if len(next) == 0 {
		next = w.planned(x, false).calls
	}
	c := next[0]
	switch c.kind {
	case callDelete, callRelease:
		return fmt.Sprintf("%s %d", callNames[c.kind], c.n)
	case callStatus:
		return callNames[c.kind] + ": " + describeStatus(c.status)
	}
	return callNames[c.kind]
}

// String is what is stored.
func (w *world) String() string {
	var b strings.Builder
	if job := w.job(); job == nil {
		b.WriteString("no Job")
	} else {
		b.WriteString(ledger.Describe(job))
	}
	for n, v := range w.cluster.pods {
		if v != nil {
			fmt.Fprintf(&b, "; pod %d: %s, deleted %v, held %v, gone %v", n, v.phase, v.deleting, v.held, v.gone)
		}
	}
	return b.String()
}

func describeStatus(s *batchv1.JobStatus) string { return ledger.Describe(&batchv1.Job{Status: *s}) }
