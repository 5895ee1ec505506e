package tracker

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"jobpolicy.dev/executor/podcache"
)

// moment is what is true of a pod from a version on.
type moment struct {
	rv                                          int
	exists, ours, loose, matches, tracked, ends bool // loose: nothing controls it
}

func (m moment) pod() *podcache.Pod {
	options := []option{inPhase(corev1.PodRunning)}
	if m.ends {
		options = append(options, inPhase(corev1.PodSucceeded))
	}
	if m.tracked {
		options = append(options, tracked)
	}
	if !m.matches {
		options = append(options, stray)
	}
	switch {
	case m.loose:
		options = append(options, ofNobody)
	case !m.ours:
		options = append(options, ownedBy("another"))
	}
	return podOf(1, m.rv, options...)
}

// past is the history of one pod, and how much of it the informer's store and its
// handler have shown.
type past struct {
	moments        []moment
	store, handler int // How many moments each of them has processed.
	reowned        bool
	tr             *Job
	*rapid.T
}

func (p *past) now() moment { return p.moments[len(p.moments)-1] }

// change changes one property of the pod. A removed finalizer does not come back.
func (p *past) change() {
	m := p.now()
	if !m.exists {
		return
	}
	m.rv += rapid.IntRange(1, 3).Draw(p.T, "versions")
	switch rapid.SampledFrom([]string{"labels", "owner", "ends", "released", "deleted"}).Draw(p.T, "change") {
	case "labels":
		m.matches = !m.matches
	case "owner":
		m.ours, p.reowned = !m.ours, true
		m.loose = !m.ours && rapid.Bool().Draw(p.T, "of nobody")
	case "ends":
		m.ends = true
	case "released":
		m.tracked = false
	case "deleted":
		m.exists = m.tracked // It goes once it is released.
	}
	p.moments = append(p.moments, m)
}

// relist replaces a watch that broke by a new list: the store and the handlers skip what was
// between.
func (p *past) relist() {
	p.store = len(p.moments)
	p.show(p.store)
}

// handle does what the executor's handlers do with the next moment.
func (p *past) handle() {
	if p.handler < p.store {
		p.show(p.handler + 1)
	}
}

// show lets the handlers see the moment before this one next.
func (p *past) show(next int) {
	m := p.moments[next-1]
	before := p.handler > 0 && p.moments[p.handler-1].ours
	p.handler = next
	switch {
	case !m.exists && before:
		p.tr.PodGone(uidOf(1), Watch)
	case m.exists && m.ours:
		p.tr.ObservePod(m.pod(), Watch)
	case m.exists && before:
		p.tr.PodLeft(m.pod(), Watch)
	}
}

func (p *past) sweep() {
	if p.store == 0 {
		return
	}
	shown := p.moments[p.store-1]
	p.tr.SweepPods(uint64(shown.rv), func(*podcache.Pod) *podcache.Pod {
		if !shown.exists {
			return nil
		}
		return shown.pod()
	})
}

// list lists by selector, while something may happen.
func (p *past) list() {
	l, m := p.tr.BeginList(), p.now()
	var pods []*podcache.Pod
	if m.exists && m.ours && m.matches {
		pods = append(pods, m.pod())
	}
	for range rapid.IntRange(0, 2).Draw(p.T, "meanwhile") {
		p.handle()
	}
	l.End(pods, podOf(1, m.rv).ResourceVersion)
}

// read is a live read, or the answer to a write.
func (p *past) read() {
	end := p.tr.BeginCall()
	defer end()
	m := p.now()
	for range rapid.IntRange(0, 2).Draw(p.T, "meanwhile") {
		p.handle()
	}
	switch {
	case !m.exists:
		p.tr.PodGone(uidOf(1), Response)
	case m.ours:
		p.tr.ObservePod(m.pod(), Response)
	default:
		p.tr.PodLeft(m.pod(), Response)
	}
}

// Whatever happens to a pod, and in whatever order watch, lists and responses show it: the
// tracker confirms no release while the pod has its finalizer, no pod is counted twice (I2),
// and once the watch has shown everything, the tracker knows the truth.
func TestWhateverIsShownWhenThePodIsKnownInTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &past{T: t, tr: New(Key{}, nil), moments: []moment{{rv: 1, exists: true, ours: true, matches: true, tracked: true}}}
		p.tr.SetPolicy(selecting)
		if rapid.Bool().Draw(t, "first shown by the watch") {
			p.relist()
		} else {
			p.tr.ObservePod(p.now().pod(), Response)
		}
		recorded := ViewOptions{Uncounted: &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{uidOf(1)}}}
		counted := false
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"change", "store", "handle", "sweep", "list", "read", "relist"}).Draw(t, "step") {
			case "change":
				p.change()
			case "store":
				p.store = min(p.store+1, len(p.moments))
			case "handle":
				p.handle()
			case "relist":
				p.relist()
			case "sweep":
				p.sweep()
			case "list":
				p.list()
			case "read":
				p.read()
			}
			m, v := p.now(), mustView(t, p.tr, recorded)
			if len(v.Confirmed) > 0 && m.exists && m.ours && m.tracked && !p.reowned {
				t.Fatalf("the release is confirmed of a pod that holds the finalizer: %+v", m)
			}
			counted = counted || len(v.Confirmed) > 0
			if counted && len(v.Unaccounted) > 0 && !p.reowned {
				t.Fatalf("a pod that was counted is a row again: %+v", m)
			}
		}
		for p.store = len(p.moments); p.handler < p.store; {
			p.handle()
		}
		p.sweep()
		want := New(Key{}, nil)
		want.SetPolicy(selecting)
		if m := p.now(); m.exists && m.ours {
			want.ObservePod(m.pod(), Watch)
		}
		got, exact := mustView(t, p.tr, ViewOptions{}), mustView(t, want, ViewOptions{})
		if got.Pods.String() != exact.Pods.String() || len(got.Unaccounted) != len(exact.Unaccounted) ||
			len(p.tr.Strays()) != len(want.Strays()) || len(p.tr.pods.records) != len(want.pods.records) {
			t.Errorf("in the end: %v, %d rows, %d strays, %d pods; want %v, %d, %d, %d", got.Pods, len(got.Unaccounted), len(p.tr.Strays()), len(p.tr.pods.records),
				exact.Pods, len(exact.Unaccounted), len(want.Strays()), len(want.pods.records))
		}
	})
}
