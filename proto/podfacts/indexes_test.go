package podfacts

import (
	"math/rand/v2"
	"testing"
)

// A set of indexes equals a plain map, whatever is added and removed: few indexes of one page, of
// neighbouring words, and of pages far apart.
func TestIndexSetsEqualThoseOfAPlainMap(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		var s indexes
		counts := map[int32]int{}
		for range random.IntN(60) {
			ix := random.Int32N(200) * []int32{1, 1, 64, 4096}[random.IntN(4)]
			if counts[ix] > 0 && random.IntN(2) == 0 {
				s.remove(ix)
				counts[ix]--
				continue
			}
			s.add(ix)
			counts[ix]++
		}
		previous, members := int32(-2), 0
		for _, r := range s.set().GetRanges() {
			if r.First <= previous+1 {
				t.Fatalf("seed %d: ranges touch or are out of order: %v", seed, s.set())
			}
			for previous = r.First; previous <= r.Last; previous++ {
				if members++; counts[previous] == 0 {
					t.Fatalf("seed %d: %d is no member: %v", seed, previous, s.set())
				}
			}
			previous = r.Last
		}
		for _, n := range counts {
			if n > 0 {
				members--
			}
		}
		if members != 0 {
			t.Fatalf("seed %d: %d members too many: %v", seed, members, s.set())
		}
	}
}
