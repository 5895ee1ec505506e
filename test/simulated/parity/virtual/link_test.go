package virtual

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"jobpolicy.dev/deploy/local/must"
)

// A fakeServer answers every request with a body of lines, one each second.
type fakeServer struct{ lines []string }

func (f fakeServer) RoundTrip(*http.Request) (*http.Response, error) {
	body, w := io.Pipe()
	go func() {
		for _, line := range f.lines {
			if _, err := io.WriteString(w, line+"\n"); err != nil {
				return // Nobody reads any more.
			}
			time.Sleep(time.Second)
		}
		w.Close()
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, nil
}

// arrivals are when the lines of a watch arrive, in milliseconds after it began.
func arrivals(t *testing.T, l *link) []int64 {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://world/api/v1/pods?watch=true", nil)
	must.Succeed(t, err)
	resp, err := l.RoundTrip(req)
	must.Succeed(t, err)
	defer resp.Body.Close()
	begun, line := time.Now(), make([]byte, 2)
	var at []int64
	for {
		if _, err := io.ReadFull(resp.Body, line); err != nil {
			return at
		}
		at = append(at, time.Since(begun).Milliseconds())
	}
}

func TestEventsComeAsLateAsTheyAreToldTo(t *testing.T) {
	cases := map[string]struct {
		late Latenesses
		want []int64
	}{
		"at once":           {nil, []int64{0, 1000, 2000}},
		"late":              {Latenesses{"pods": {By: 700 * time.Millisecond}}, []int64{700, 1700, 2700}},
		"one by one":        {Latenesses{"pods": {Apart: 1500 * time.Millisecond}}, []int64{0, 1500, 3000}},
		"of something else": {Latenesses{"jobs": {By: time.Hour}}, []int64{0, 1000, 2000}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := arrivals(t, newLink(fakeServer{[]string{"a", "b", "c"}}, tc.late, 1, nil))
				if len(got) != len(tc.want) {
					t.Fatalf("%d events arrived, want %d", len(got), len(tc.want))
				}
				for i := range got {
					if early := got[i] - tc.want[i]; early < 0 || early > 10 {
						t.Errorf("event %d arrived after %d ms, want %d and a few", i, got[i], tc.want[i])
					}
				}
			})
		})
	}
}

func TestNothingComesThroughALinkThatIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink(fakeServer{[]string{"a", "b", "c"}}, nil, 1, nil)
		time.AfterFunc(1500*time.Millisecond, l.cut)
		if got := arrivals(t, l); len(got) != 2 {
			t.Errorf("%d events arrived, want those of the time before the cut: 2", len(got))
		}
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://world/api/v1/pods", nil)
		must.Succeed(t, err)
		if resp, err := l.RoundTrip(req); !errors.Is(err, errCut) {
			t.Errorf("RoundTrip() = %v, %v; want %v", resp, err, errCut)
		}
		time.Sleep(time.Minute) // The server comes to its end.
	})
}
