package leaderelection

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobpolicy.dev/executor/internal/fakes"
)

// wire is a transport that reads the body of a request, at once or later.
type wire struct {
	beforeBody func()
	received   []string // bodies that came whole
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		if w.beforeBody != nil {
			w.beforeBody()
		}
		read, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(read)
	}
	w.received = append(w.received, r.Method+" "+body)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func send(t *testing.T, rt http.RoundTripper, method, body string) error {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://api/pods", reader)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(r)
	if err == nil {
		_ = resp.Body.Close() // there is none
	}
	return err
}

func TestFenceLetsWritesPassOnlyWhileTheLeaseIsCertain(t *testing.T) {
	const write, refused = true, false
	cases := map[string]struct {
		before func(api *leases, clock *fakes.Clock) // with the lease renewed a moment ago
		want   bool
	}{
		"renewed in time": {before: func(*leases, *fakes.Clock) { time.Sleep(time.Minute) }, want: write},
		"not renewed, but not over": {
			before: func(api *leases, _ *fakes.Clock) { api.setAway(true); time.Sleep(9 * time.Second) },
			want:   write,
		},
		"the wall clock jumps over the lease": {before: func(_ *leases, c *fakes.Clock) { c.Set(15 * time.Second) }, want: refused},
		"the wall clock jumps, and the lease is renewed": {
			before: func(_ *leases, c *fakes.Clock) {
				c.Set(time.Hour)
				time.Sleep(3 * time.Second)
			},
			want: write,
		},
		"the wall clock is set back": {before: func(_ *leases, c *fakes.Clock) { c.Set(-time.Hour) }, want: write},
		"set back, and not renewed": {
			before: func(api *leases, c *fakes.Clock) { c.Set(-time.Hour); api.setAway(true); time.Sleep(15 * time.Second) },
			want:   refused,
		},
		"another replica holds it, unseen by us": {before: func(api *leases, _ *fakes.Clock) { api.take("second") }, want: write},
		"another replica was seen to hold it": {
			before: func(api *leases, _ *fakes.Clock) { api.take("second"); time.Sleep(3 * time.Second) },
			want:   refused,
		},
		"another replica came and went": {
			before: func(api *leases, _ *fakes.Clock) { api.take(""); time.Sleep(3 * time.Second) },
			want:   refused,
		},
		"another replica was seen, and we hold again": {
			before: func(api *leases, _ *fakes.Clock) { api.take("second"); time.Sleep(3 * time.Second); api.take("first") },
			want:   refused,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, clock, r := startLeader(t)
				synctest.Wait()
				tc.before(api, clock)
				net := &wire{}
				rt := r.Fence()(net)
				err := send(t, rt, http.MethodPost, "pod")
				if passed := err == nil && len(net.received) == 1; passed != tc.want {
					t.Errorf("the write passed: %v (%v), want %v", passed, err, tc.want)
				}
				if err != nil && !errors.Is(err, ErrNotLeading) {
					t.Errorf("%v, want ErrNotLeading", err)
				}
				if err := send(t, rt, http.MethodGet, ""); err != nil {
					t.Errorf("a read: %v, want nil", err)
				}
			})
		})
	}
}

func TestNothingIsWrittenBeforeTheLeaseIsHeld(t *testing.T) {
	net := &wire{}
	election := build(t, config(&leases{}, "first"))
	rt := election.Fence()(net)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		for _, body := range []string{"body", ""} {
			if err := send(t, rt, method, body); !errors.Is(err, ErrNotLeading) {
				t.Errorf("%s: %v, want ErrNotLeading", method, err)
			}
		}
	}
	if err := send(t, rt, http.MethodHead, ""); err != nil {
		t.Errorf("HEAD: %v, want nil", err)
	}
	if len(net.received) != 1 {
		t.Errorf("sent: %q, want HEAD alone", net.received)
	}
}

// renewed is when the last renewal was sent, as far as the replica knows.
func (r *replica) renewed() time.Time {
	r.tenure.mu.Lock()
	defer r.tenure.mu.Unlock()
	return r.tenure.renewed.monotonic
}

// TestARenewalCountsFromWhenItWasSent: other replicas may have seen it any time
// after that.
func TestARenewalCountsFromWhenItWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, _, r := startLeader(t)
		synctest.Wait()
		api.latency.Store(int64(4 * time.Second))
		time.Sleep(3 * time.Second) // the next renewal is on its way
		sent := r.renewed().Add(2 * time.Second)
		time.Sleep(4 * time.Second)
		if got := r.renewed(); !got.Equal(sent) {
			t.Errorf("renewed at %s, want at %s", got, sent)
		}
	})
}

// TestABodyIsNotSentOnceTheLeaseIsOver: the process may have been frozen after
// the headers were sent, or wait for a connection.
func TestABodyIsNotSentOnceTheLeaseIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, clock, r := startLeader(t)
		net := &wire{beforeBody: func() { clock.Set(time.Minute) }}
		if err := send(t, r.Fence()(net), http.MethodDelete, "options"); !errors.Is(err, ErrNotLeading) {
			t.Errorf("%v, want ErrNotLeading", err)
		}
		if len(net.received) != 0 {
			t.Errorf("sent: %q, want nothing", net.received)
		}
	})
}

// again is a transport that sends the body anew, as net/http does when a kept
// connection turns out to be closed.
type again struct{ wire }

func (a *again) RoundTrip(r *http.Request) (*http.Response, error) {
	_ = r.Body.Close()
	a.beforeBody()
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	second := *r
	second.Body = body
	a.beforeBody = nil
	return a.wire.RoundTrip(&second)
}

func TestABodyThatIsSentAgainIsCheckedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, clock, r := startLeader(t)
		net := &again{wire{beforeBody: func() { clock.Set(time.Minute) }}}
		if err := send(t, r.Fence()(net), http.MethodPost, "pod"); !errors.Is(err, ErrNotLeading) {
			t.Errorf("%v, want ErrNotLeading", err)
		}
		if len(net.received) != 0 {
			t.Errorf("sent: %q, want nothing", net.received)
		}
	})
}

// From the moment at which a replica sees that another one holds the lease, no write passes,
// although its own last renewal is recent and its term has not ended yet.
func TestATenureIsOverOnceAnotherHolderIsSeen(t *testing.T) {
	for _, holder := range []string{"second", ""} { // "": another replica came and went
		own := newTenure(time.Minute, time.Now)
		own.renewedAt(own.now())
		own.seen("first", "first")
		if err := own.check(); err != nil {
			t.Errorf("after a renewal: %v, want nil", err)
		}
		own.seen(holder, "first")
		if err := own.check(); !errors.Is(err, ErrNotLeading) {
			t.Errorf("holder %q was seen: %v, want ErrNotLeading", holder, err)
		}
	}
}
