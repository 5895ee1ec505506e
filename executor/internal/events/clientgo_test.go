package events

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
)

// sink is the server as client-go's recorder sees it.
type sink struct{ server *server }

func (s sink) Create(ev *corev1.Event) (*corev1.Event, error) {
	return s.server.Events(ev.Namespace).Create(context.Background(), ev, metav1.CreateOptions{})
}

func (s sink) Update(ev *corev1.Event) (*corev1.Event, error) { return ev, errBroken } // It is never called.

func (s sink) Patch(ev *corev1.Event, patch []byte) (*corev1.Event, error) {
	return s.server.Events(ev.Namespace).Patch(context.Background(), ev.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
}

// startClientGo runs client-go's recorder for the length of the test.
func startClientGo(t *testing.T, s *server) record.EventRecorder {
	t.Helper()
	b := record.NewBroadcaster()
	b.StartRecordingToSink(sink{s})
	t.Cleanup(func() {
		b.Shutdown()
		time.Sleep(time.Hour) // Shutdown does not wait for the event that is being sent.
	})
	return b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester"})
}

// TestWhatClientGoLosesIsSent is why this package does not use client-go's recorder: the
// same events, all at once, through both. If client-go sends more than is expected here,
// doc.go is wrong.
func TestWhatClientGoLosesIsSent(t *testing.T) {
	cases := map[string]struct {
		hanging, others int // Events of a namespace whose webhook hangs, and then of another one.
		refused         func(n int32) bool
		// least and most are how many of the others client-go sends in a minute.
		least, most int
	}{
		"as many as client-go has room for":   {others: 1000, least: 1000, most: 1000},
		"a larger burst":                      {others: 2000, least: 1000, most: 1100},
		"the API server refuses some for now": {others: 500, least: 450, most: 450, refused: func(n int32) bool { return n%10 == 0 }},
		"a webhook hangs elsewhere":           {hanging: 4, others: 500, least: 0, most: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sent := func(start func(*testing.T, *server) record.EventRecorder) (n int) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer()
					var asked atomic.Int32
					s.before = func(ev *corev1.Event) error {
						if ev.Namespace == "hangs" {
							time.Sleep(20 * time.Second)
						}
						if tc.refused != nil && tc.refused(asked.Add(1)) {
							return unavailable()
						}
						return nil
					}
					recorder := start(t, s)
					for i := range tc.hanging {
						recorder.Event(job("hangs", fmt.Sprint("other", i)), normal, "Completed", "x")
					}
					for i := range tc.others {
						recorder.Event(job("ns", fmt.Sprint("job", i)), normal, "Completed", "x")
					}
					time.Sleep(time.Minute)
					n = s.count("ns")
				})
				return n
			}
			if n := sent(startClientGo); n < tc.least || n > tc.most {
				t.Errorf("client-go sent %d of %d events, want %d to %d", n, tc.others, tc.least, tc.most)
			}
			if n := sent(func(t *testing.T, s *server) record.EventRecorder { return start(t, s) }); n != tc.others {
				t.Errorf("this package sent %d of %d events", n, tc.others)
			}
		})
	}
}
