package controller

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The handler gets a first list ordered by name, whatever the order of the informer, once it is complete or
// another event comes; and later objects as they come.
func TestTheFirstListIsOrderedByName(t *testing.T) {
	job := func(name string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	for name, tc := range map[string]struct {
		then func(*firstList, *bool)
		want []string
	}{
		"nothing before the list is complete": {func(f *firstList, _ *bool) { f.seen() }, nil},
		"all when it is":                      {func(f *firstList, complete *bool) { *complete = true; f.seen() }, []string{"a", "b", "c"}},
		"once":                                {func(f *firstList, complete *bool) { *complete = true; f.seen(); f.seen() }, []string{"a", "b", "c"}},
		"before a new object":                 {func(f *firstList, _ *bool) { f.OnAdd(job("0"), false) }, []string{"a", "b", "c", "0"}},
		"before a change":                     {func(f *firstList, _ *bool) { f.OnUpdate(job("b"), job("b")) }, []string{"a", "b", "c", "b"}},
		"before a deletion":                   {func(f *firstList, _ *bool) { f.OnDelete(job("b")) }, []string{"a", "b", "c", "b gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			complete := false
			f := &firstList{
				handler: Handler(
					func(_, j *batchv1.Job) { got = append(got, j.Name) },
					func(j *batchv1.Job) { got = append(got, j.Name+" gone") },
				),
				complete: func() bool { return complete },
			}
			for _, name := range []string{"c", "a", "b"} {
				f.OnAdd(job(name), true)
			}
			tc.then(f, &complete)
			if !slices.Equal(got, tc.want) {
				t.Errorf("the handler got %v, want %v", got, tc.want)
			}
		})
	}
}

// Keys that waited for the engine are due in the same order each time.
func TestKeysThatWaitedForTheEngineAreDueInOneOrder(t *testing.T) {
	q := newQueue(newController(t, testConfig()), Options[string]{})
	var want []string
	for n := range 20 {
		key := fmt.Sprintf("key-%02d", n)
		want = append(want, key)
		e := &entry{}
		e.failed(ErrEngine, q.c.BackoffLimits(), 0)
		q.entries[key] = e
	}
	q.engineIsBack()
	var got []string
	for range want {
		key, _ := q.queue.Get()
		got = append(got, key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("they are due in the order %v", got)
	}
}
