package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// maxShrunk bounds how many failing cases are made shorter: with more of them
// something is wrong that needs no small script to be seen.
const maxShrunk = 6

// shrinkAll replaces failing results by those of shorter scripts.
func shrinkAll(ctx context.Context, o oracle, results []result) {
	var all sync.WaitGroup
	shrunk := 0
	for i, r := range results {
		if r.problem == "" || r.unfit || shrunk == maxShrunk {
			continue
		}
		shrunk++
		all.Go(func() { results[i] = o.shrink(ctx, r, fmt.Sprintf("c%d", i)) })
	}
	all.Wait()
}

// shrink looks for a shorter script that still shows a difference. It leaves
// out one step at a time, all variants side by side, and goes on with the first
// of them that fails.
func (o oracle) shrink(ctx context.Context, failing result, namespace string) result {
	for round := 1; len(failing.c.Steps) > 1; round++ {
		shorter, found := o.shrinkOnce(ctx, failing, fmt.Sprintf("%s-%d", namespace, round))
		if !found {
			break
		}
		failing = shorter
	}
	return failing
}

func (o oracle) shrinkOnce(ctx context.Context, failing result, namespace string) (shorter result, found bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	steps := failing.c.Steps
	variants := make(chan result, len(steps))
	for i := range steps {
		c := *failing.c
		c.next, c.Steps = nil, slices.Delete(slices.Clone(steps), i, i+1)
		go func() { variants <- o.play(ctx, &c, fmt.Sprintf("%s-%d", namespace, i)) }()
	}
	for range steps {
		if r := <-variants; r.problem != "" && !r.unfit {
			return r, true
		}
	}
	return result{}, false
}
