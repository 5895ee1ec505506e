package writes

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"
)

const (
	// staysAfter is how many tries in a row must be refused before anybody is told. With the default
	// backoff that is after 3 s: a refusal that a restarting webhook causes, or an object that was read
	// too early, is over by then.
	staysAfter = 3
	// maxTold is how many texts of one refusal are told of. A text that is never the same must not make
	// an event at every try.
	maxTold = 10
)

// A Refusal says that the API server refuses a kind of write. Times are wall time.
type Refusal struct {
	Kind Kind
	// Since is when it was refused for the first time, and Last when it was tried last.
	Since, Last time.Time
	// Why is the answer to the last try.
	Why string
	// Objects is how many objects, such as pods, the writes are refused for.
	Objects int
}

// Refusals are the writes for one Job or CronJob that the API server refuses. The zero value is ready
// for use. A nil *Refusals remembers nothing.
type Refusals struct {
	mu    sync.Mutex
	kinds map[Kind]*refused
}

// refused is what is remembered of a kind.
type refused struct {
	Refusal
	// tries are the refused tries in a row, by object.
	tries map[string]int
	// told are the texts that were told of, without what differs from try to try.
	told []string
}

// Refused records that a write of an object was refused. It reports whether to tell of it: the refusal
// stays, and nobody was told of this text since the kind of write was refused first. vary are strings
// in the text that differ from object to object, such as its name.
func (r *Refusals) Refused(k Kind, object string, now time.Time, why string, vary ...string) (tell bool) {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.kinds[k]
	if e == nil {
		e = &refused{Refusal: Refusal{Kind: k, Since: now}, tries: map[string]int{}}
		if r.kinds == nil {
			r.kinds = map[Kind]*refused{}
		}
		r.kinds[k] = e
	}
	e.Last, e.Why = now, why
	e.tries[object]++
	text := plain(why, vary)
	if (e.tries[object] < staysAfter && !k.announcement().atOnce) || len(e.told) >= maxTold || slices.Contains(e.told, text) {
		return false
	}
	e.told = append(e.told, text)
	return !k.EveryTry()
}

// Succeeded forgets the refusals of an object. Those of a kind are forgotten with the last object.
func (r *Refusals) Succeeded(k Kind, object string) {
	r.Keep(k, func(other string) bool { return other != object })
}

// Stands reports whether a kind of write is refused.
func (r *Refusals) Stands(k Kind) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kinds[k] != nil
}

// Over forgets kinds of which there is nothing to write any more.
func (r *Refusals) Over(kinds ...Kind) {
	for _, k := range kinds {
		r.Keep(k, func(string) bool { return false })
	}
}

// Keep forgets the objects of a kind for which there is nothing to write any more.
func (r *Refusals) Keep(k Kind, wanted func(object string) bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.kinds[k]
	if e == nil {
		return
	}
	maps.DeleteFunc(e.tries, func(object string, _ int) bool { return !wanted(object) })
	if len(e.tries) == 0 {
		delete(r.kinds, k)
	}
}

// Standing are the refusals that people have been told of, by kind.
func (r *Refusals) Standing() (all []Refusal) {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, e := range r.kinds {
		if len(e.told) > 0 || k.EveryTry() {
			standing := e.Refusal
			standing.Objects = len(e.tries)
			all = append(all, standing)
		}
	}
	slices.SortFunc(all, func(a, b Refusal) int { return cmp.Compare(a.Kind, b.Kind) })
	return all
}

// varying are UIDs, times, durations, and long numbers such as resource versions and ports.
var varying = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+(:\d+)+|\b\d+(\.\d+)?(ns|µs|ms|s)\b|\b\d{4,}\b`)

// plain is a text without what differs from try to try.
func plain(text string, vary []string) string {
	for _, s := range vary {
		if s != "" {
			text = regexp.MustCompile(`\b`+regexp.QuoteMeta(s)+`\b`).ReplaceAllString(text, "*")
		}
	}
	return varying.ReplaceAllString(text, "*")
}
