// Package pure stays close to the rules and breaks none.
package pure

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

type rule struct {
	name string
	max  int
}

func (r *rule) limit() int { return r.max }

var (
	rules   = []rule{{"first", 1}, {"second", 2}}
	byName  = map[string]*rule{"first": &rules[0]}
	never   = time.Time{}
	builder = func() string { return fmt.Sprint(len(rules)) }
)

// Decide reads tables, sorts what comes out of a map, and writes to local variables only.
func Decide(now time.Time, m map[string]int) (string, int) {
	total, rules := 0, slices.Clone(rules)
	rules[0].max = 7
	for i := range rules {
		r := &rules[i]
		total += r.limit()
	}
	for _, v := range m { // order does not matter: addition of integers commutes
		total += v
	}
	// order does not matter: the largest value is the same in any order
	for _, v := range m {
		total = max(total, v)
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		total += len(k)
	}
	smallestFirst := slices.SortedFunc((maps.Values(m)), func(a, b int) int { return a - b })
	if now.After(never) && byName["first"].limit() > 0 {
		return builder(), total + len(smallestFirst)
	}
	return now.UTC().Format(time.RFC3339), total
}
