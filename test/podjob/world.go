package podjob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"jobpolicy.dev/executor/podjob"
	"jobpolicy.dev/proto/answer"
	"jobpolicy.dev/test/world/apiserver"
)

// settleTime is how long a world goes on after its faults: longer than all delays in a row.
const settleTime = 45 * time.Minute

// A world is a plan being played.
type world struct {
	drawer
	plan        *plan
	began, ends time.Time
	agenda      agenda
	server      *apiserver.Server
	owner       *owner
	kubelets    *kubelets
	judge       *judge
	strangers   corev1client.CoreV1Interface
	pods        corev1client.CoreV1Interface // As the controller reads and writes them.
	controller  *podjob.Controller
	lives       int  // How often the controller has started.
	changed     bool // The controller has been told of a change.
	tally       tally
	story       []string
}

// A tally counts what happened in worlds.
type tally struct {
	worlds, writes, requests int
	came                     map[string]int // Faults, ends of pods, and how groups ended.
}

func (t *tally) add(other tally) {
	t.worlds, t.writes, t.requests = t.worlds+other.worlds, t.writes+other.writes, t.requests+other.requests
	if t.came == nil {
		t.came = map[string]int{}
	}
	for what, n := range other.came {
		t.came[what] += n
	}
}

// play plays a world, and returns which rules were broken, and the story of the world.
func play(t *testing.T, seed uint64) (counts tally, broken, story []string) {
	synctest.Test(t, func(*testing.T) {
		w := newWorld(draw(seed))
		w.run()
		counts, broken, story = w.tally, w.judge.broken, w.story
	})
	return counts, broken, story
}

func newWorld(p *plan) *world {
	w := &world{
		drawer: newDrawer(p.seed, 2), plan: p, began: time.Now(), ends: time.Now().Add(p.trouble + settleTime),
		tally: tally{worlds: 1, came: map[string]int{}},
	}
	w.owner = newOwner(w)
	w.kubelets = &kubelets{world: w, fates: map[types.UID]fate{}, created: map[string]int{}, dying: map[types.UID]bool{}}
	w.judge = newJudge(w)
	w.server = apiserver.New(apiserver.Options{Observe: w.observe})
	w.strangers = newClient(w.server.Transport("stranger"))
	w.restart()
	return w
}

// restart begins with a new controller, which remembers nothing. Whatever the last one is about to do,
// it does not do any more.
func (w *world) restart() {
	w.lives++
	w.pods = newClient(link{w, w.lives})
	w.controller = &podjob.Controller{Ask: w.ask, Pods: w.pods}
	w.changed = true
	for _, g := range w.owner.groups {
		g.failed = time.Time{}
	}
}

// calm reports whether the faults have ended.
func (w *world) calm() bool { return time.Since(w.began) >= w.plan.trouble }

// delay draws how long a request, an answer or a notice takes.
func (w *world) delay() time.Duration { return w.within(time.Millisecond, w.plan.latency) }

func (w *world) came(what string) { w.tally.came[what]++ }

// notef adds a line to the story.
func (w *world) notef(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf("%12v  ", time.Since(w.began).Round(time.Microsecond))+fmt.Sprintf(format, args...))
}

// observe handles each write of the API server, under its lock.
func (w *world) observe(write apiserver.Write) {
	if write.Resource != "pods" {
		return
	}
	old, _ := write.Old.(*corev1.Pod)
	pod, _ := write.New.(*corev1.Pod)
	w.tally.writes++
	w.notef("%s: %s %s: %s", write.By, write.Verb, write.Key.Name, describe(pod))
	w.judge.pod(write.By, old, pod)
	w.kubelets.see(old, pod)
	w.after(w.delay(), func() { w.changed = true })
}

func describe(pod *corev1.Pod) string {
	if pod == nil {
		return "gone"
	}
	text := string(pod.Status.Phase)
	if pod.DeletionTimestamp != nil {
		text += ", being deleted"
	}
	if tracked(pod) {
		text += ", has the finalizer"
	}
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		text += ", of " + ref.Name
	}
	return text
}

// run plays the world to its end, as podjob.Run does: it reconciles after each change, at
// the time that the last reconcile returned, and a second after an error.
func (w *world) run() {
	w.meddle()
	for time.Now().Before(w.ends) && !w.judge.hopeless() {
		w.changed = false
		next, err := w.reconcile()
		w.judge.reconciled(next, err)
		if err != nil {
			w.notef("reconcile: %v", err)
			next = time.Now().Add(time.Second)
		}
		w.rest(next)
	}
	w.judge.end()
}

// reconcile reads everything, and brings each group one step forward.
func (w *world) reconcile() (next time.Time, err error) {
	ctx := context.Background()
	w.pass(w.delay())
	read, gone, life := w.owner.version, w.owner.gone, w.lives
	views := map[string]*view{}
	for _, g := range w.owner.groups {
		views[g.name] = &view{job: g.job.DeepCopy()}
	}
	list, err := w.pods.Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return next, err
	}
	pods := podjob.ByOwner(list.Items, kind).Take(&w.owner.meta)
	for _, pod := range pods {
		if v := views[pod.Annotations[groupAnnotation]]; v != nil {
			v.pods = append(v.pods, pod)
		}
	}
	for _, g := range w.owner.groups {
		g.view = views[g.name]
		g.view.at, g.view.losses = time.Now(), w.judge.losses
	}
	if gone {
		w.judge.removing = true
		return next, w.controller.Remove(ctx, pods)
	}
	for _, g := range w.owner.groups {
		again, stepErr := w.controller.Step(ctx, podjob.Group{
			Owner: w.owner.reference(), Job: g.view.job.DeepCopy(), Pods: clonePods(g.view.pods), WriteStatus: w.owner.writer(g, &read),
		})
		if w.lives != life {
			return next, errDead
		}
		if stepErr != nil {
			err = errors.Join(err, fmt.Errorf("group %s: %w", g.name, stepErr))
		}
		next = answer.Earlier(next, again)
	}
	return next, err
}

func clonePods(pods []corev1.Pod) []corev1.Pod {
	copies := make([]corev1.Pod, len(pods))
	for i := range pods {
		pods[i].DeepCopyInto(&copies[i])
	}
	return copies
}

// String says what was drawn.
func (p *plan) String() string {
	text := fmt.Sprintf("trouble for %v, %d%% of requests fail, %d%% are raced, webhooks %v, quotas %v, %d strangers, the owner is deleted: %t",
		p.trouble, p.failing, p.raced, p.webhooks, p.quotas, p.strangers, p.ownerGoes)
	for _, g := range p.groups {
		spec := g.spec
		spec.Template = corev1.PodTemplateSpec{}
		text += fmt.Sprintf("\ngroup %s: %s, edits %v", g.name, spec.String(), g.edits)
	}
	return text
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
