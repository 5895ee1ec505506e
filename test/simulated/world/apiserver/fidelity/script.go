package fidelity

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobpolicy.dev/test/simulated/world/apiserver"
)

const (
	callsPerScript = 80
	// patience bounds the wait for the controllers of the real cluster.
	patience = 30 * time.Second
	glance   = 20 * time.Millisecond
)

// A script is one sequence of requests, played on both sides at once.
type script struct {
	*drawer
	memory, real *side
	server       *apiserver.Server
	watches      []*watchPair
	quota        bool
	story        []string
}

// A difference is the first difference between the two sides.
type difference struct {
	step, diff string
	story      []string
}

func (d *difference) Error() string {
	return fmt.Sprintf("%s\n(-memory +real)\n%s\nbefore that:\n%s", d.step, d.diff, strings.Join(last(d.story, 8), "\n"))
}

func last(lines []string, n int) []string { return lines[max(0, len(lines)-n):] }

// play draws calls and compares the replies. It returns nil if the sides do not differ.
func (s *script) play(ctx context.Context) error {
	for range callsPerScript {
		if s.once(8) {
			if err := s.watch(ctx); err != nil {
				return err
			}
			continue
		}
		if err := s.step(ctx, s.call()); err != nil {
			return err
		}
	}
	if err := s.rest(ctx, "the end"); err != nil {
		return err
	}
	return s.compareWatches()
}

// step plays one call on both sides.
func (s *script) step(ctx context.Context, c call) error {
	line := fmt.Sprintf("%s: %s %s", c.text, c.method, c.path)
	if c.query != "" {
		line += "?" + c.query
	}
	if c.body != nil && c.method != "GET" {
		line += " " + string(c.body(s.memory))
	}
	if strings.Contains(c.query, "resourceVersion=") {
		s.freshen(ctx, c)
	}
	memory, broken := s.memory.do(ctx, c)
	real, alike := s.real.do(ctx, c)
	if (broken == nil) != (alike == nil) {
		return fmt.Errorf("%s: memory: %v, real: %w", line, broken, alike)
	}
	s.story = append(s.story, fmt.Sprintf("%s → %d", line, real.Code))
	if diff := cmp.Diff(allow(c, memory), allow(c, real)); diff != "" {
		return &difference{line, diff, s.story}
	}
	s.note(c, memory)
	if c.method == "GET" {
		return nil
	}
	return s.settle(ctx, line)
}

// freshen makes the real server's cache as new as its storage, because a request that names a
// version may be answered from the cache. It sends a list to both servers, so that both have
// shown the same versions.
func (s *script) freshen(ctx context.Context, c call) {
	collection, _, _ := strings.Cut(c.path, "/"+c.about.name)
	if c.about.name == "" {
		collection = c.path
	}
	for _, of := range []*side{s.memory, s.real} {
		_, _ = of.do(ctx, call{method: "GET", path: collection, aside: true})
	}
}

// note remembers the object that a creation has made.
func (s *script) note(c call, r reply) {
	body, _ := r.Body.(map[string]any)
	if c.method != "POST" || r.Code != 201 || strings.Contains(c.query, "dryRun") || body["kind"] == "Status" {
		return
	}
	made := s.memory.shown(c, r.Code, body)
	name := made.name
	if _, drawn := kinds[made.resource]; !drawn || name == "" || slices.Contains(s.known, made) {
		return
	}
	s.known = append(s.known, made)
}

// settle lets the garbage collectors of both sides do their work, if there is some.
func (s *script) settle(ctx context.Context, line string) error {
	did := false
	for s.server.CollectGarbage() {
		did = true
	}
	if !did {
		return s.settleQuota(ctx)
	}
	s.story = append(s.story, "   … and the garbage collector")
	return s.rest(ctx, line)
}

// rest waits until the real side has come to rest in the same state.
func (s *script) rest(ctx context.Context, line string) error {
	var memory, real any
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(glance) {
		if memory, err = s.state(ctx, s.memory); err != nil {
			return err
		}
		if real, err = s.state(ctx, s.real); err != nil {
			return err
		}
		if reflect.DeepEqual(memory, real) {
			return s.settleQuota(ctx)
		}
	}
	return &difference{"after " + line + ", at rest", cmp.Diff(memory, real), s.story}
}

// state has the parts of all objects that matter to a garbage collector.
func (s *script) state(ctx context.Context, of *side) (any, error) {
	state := map[string]any{}
	for _, resource := range slices.Sorted(maps.Keys(kinds)) {
		r, err := of.do(ctx, call{method: "GET", path: s.collection(resource), aside: true})
		if err != nil {
			return nil, err
		}
		body, _ := r.Body.(map[string]any)
		items, _ := body["items"].([]any)
		for _, item := range items {
			meta := inside(item.(map[string]any), "metadata")
			state[resource+"/"+meta["name"].(string)] = fields{
				"uid": meta["uid"], "owners": meta["ownerReferences"], "finalizers": meta["finalizers"], "dying": meta["deletionTimestamp"] != nil,
			}
		}
	}
	return state, nil
}
