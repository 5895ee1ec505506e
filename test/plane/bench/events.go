package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// eventsInterval is the time between two lists of the events.
	eventsInterval = 250 * time.Millisecond
	// eventsPatience is how long to wait for the next event. Events that are missing after
	// it count as lost.
	eventsPatience = 10 * time.Second
)

// jobEvents are the events of each Job: for each reason, the resource version of its first
// event. The versions say in what order the events came.
type jobEvents map[types.UID]map[string]uint64

// awaitEvents waits for the two events of each one-pod Job: its pod was created, and
// it completed. All Jobs have ended before. The events of our own contenders must all
// come, in this order. Events that the built-in controller loses are a figure.
func (r *run) awaitEvents(ctx context.Context, jobs int) error {
	if !r.contender.writesStatus {
		return nil
	}
	began, changed, last := time.Now(), time.Now(), -1
	for {
		all, err := r.readEvents(ctx)
		if err != nil {
			return err
		}
		if n := all.there(); n != last {
			changed, last = time.Now(), n
		}
		if last == 2*jobs || time.Since(changed) > eventsPatience {
			r.figures[EventsLost], r.figures[EventsAfter] = float64(2*jobs-last), changed.Sub(began).Seconds()
			r.figures[EventsSwapped] = float64(all.swapped())
			if r.contender.ours && (last < 2*jobs || all.swapped() > 0) {
				return fmt.Errorf("%d of %d events are there, those of %d Jobs in the wrong order", last, 2*jobs, all.swapped())
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(eventsInterval):
		}
	}
}

func (r *run) readEvents(ctx context.Context) (jobEvents, error) {
	var all jobEvents
	err := eachItem(ctx, func() { all = jobEvents{} }, metav1.ListOptions{FieldSelector: "involvedObject.kind=Job"},
		func(opts metav1.ListOptions) (runtime.Object, error) {
			return r.client.CoreV1().Events(r.namespace).List(ctx, opts)
		},
		func(o runtime.Object) error {
			ev := o.(*corev1.Event)
			version, err := strconv.ParseUint(ev.ResourceVersion, 10, 64)
			if err != nil {
				return err
			}
			all.add(ev.InvolvedObject.UID, ev.Reason, version)
			return nil
		})
	return all, err
}

func (t jobEvents) add(job types.UID, reason string, version uint64) {
	if t[job] == nil {
		t[job] = map[string]uint64{}
	}
	if first, ok := t[job][reason]; !ok || version < first {
		t[job][reason] = version
	}
}

// there is how many events there are, of two for each Job.
func (t jobEvents) there() int {
	n := 0
	for _, events := range t {
		for _, reason := range []string{"SuccessfulCreate", "Completed"} {
			if _, ok := events[reason]; ok {
				n++
			}
		}
	}
	return n
}

// swapped is how many Jobs completed before their pod was created, according to their events.
func (t jobEvents) swapped() int {
	n := 0
	for _, events := range t {
		created, hasCreated := events["SuccessfulCreate"]
		completed, hasCompleted := events["Completed"]
		if hasCreated && hasCompleted && completed < created {
			n++
		}
	}
	return n
}
