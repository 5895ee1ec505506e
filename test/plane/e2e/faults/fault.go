package faults

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Exchange is a call in progress.
type Exchange struct {
	Call
	w http.ResponseWriter
	r *http.Request
	// forward sends the call to the API server, even if nobody waits for the answer any
	// more, and writes the answer to w.
	forward func(w http.ResponseWriter)
	closed  <-chan struct{}
}

// A Fault decides what happens to a call.
type Fault func(x *Exchange)

// Drop ends the connection; the API server never gets the call.
func Drop(*Exchange) { panic(http.ErrAbortHandler) }

// Lose lets the API server execute the call, and then closes the connection instead of
// answering.
func Lose(x *Exchange) { ApplyThen(Drop)(x) }

// Hang never answers; the API server does not get the call. It ends when the
// executor gives up.
func Hang(x *Exchange) {
	select {
	case <-x.r.Context().Done():
	case <-x.closed:
	}
	panic(http.ErrAbortHandler)
}

// Late forwards the call after a while, if the executor still waits for it.
func Late(by time.Duration) Fault {
	return func(x *Exchange) { forwardAfter(x, time.After(by)) }
}

// Until holds the call back until release is closed, and forwards it if the executor still waits for
// it.
func Until(release <-chan struct{}) Fault {
	return func(x *Exchange) { forwardAfter(x, release) }
}

func forwardAfter[T any](x *Exchange, signal <-chan T) {
	select {
	case <-signal:
		x.forward(x.w)
	case <-x.r.Context().Done():
		panic(http.ErrAbortHandler)
	case <-x.closed:
		panic(http.ErrAbortHandler)
	}
}

// Refuse answers with a status in the API server's place.
func Refuse(code int, reason metav1.StatusReason) Fault {
	return func(x *Exchange) {
		x.w.Header().Set("Content-Type", "application/json")
		x.w.WriteHeader(code)
		_ = json.NewEncoder(x.w).Encode(metav1.Status{ // the executor may have gone
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "refused on purpose",
		})
	}
}

// Answers of an API server that is overloaded or broken.
var (
	ServerError = Refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError)
	Overloaded  = Refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
	TimedOut    = Refuse(http.StatusGatewayTimeout, metav1.StatusReasonTimeout)
	Conflict    = Refuse(http.StatusConflict, metav1.StatusReasonConflict)
)

// OneOf draws one of the faults for each call.
func OneOf(random *rand.Rand, faults ...Fault) Fault {
	var mu sync.Mutex
	return func(x *Exchange) {
		mu.Lock()
		drawn := faults[random.IntN(len(faults))]
		mu.Unlock()
		drawn(x)
	}
}

// ApplyThen lets the API server execute the call, and gives the executor the fault's
// answer instead of the real one.
func ApplyThen(f Fault) Fault {
	return func(x *Exchange) {
		x.forward(httptest.NewRecorder())
		f(x)
	}
}
