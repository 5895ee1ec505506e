package indexset_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"jobpolicy.dev/engine/indexset"
)

// model is a simple set to compare with.
type model map[int32]bool

func (m model) sorted() []int32 {
	var list []int32
	for ix := range m {
		list = append(list, ix)
	}
	slices.Sort(list)
	return list
}

// drawIndex favours both ends, where sets are most likely to go wrong.
func drawIndex(t *rapid.T, label string) int32 {
	if rapid.IntRange(0, 7).Draw(t, label+" at the top") == 0 {
		return indexset.Max - rapid.Int32Range(0, 5).Draw(t, label)
	}
	return rapid.Int32Range(0, 30).Draw(t, label)
}

func drawSet(t *rapid.T, label string) (indexset.Set, model) {
	m := model{}
	var list []int32
	for range rapid.IntRange(0, 20).Draw(t, label+" size") {
		ix := drawIndex(t, label)
		m[ix] = true
		list = append(list, ix)
	}
	return indexset.Of(list...), m
}

// same checks a set against the model, and the invariants of its ranges.
func same(t *rapid.T, what string, got indexset.Set, want model) {
	var list []int32
	got.All(func(ix int32) bool {
		list = append(list, ix)
		return true
	})
	if diff := cmp.Diff(want.sorted(), list); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
	if got.Len() != int64(len(want)) || got.Empty() != (len(want) == 0) {
		t.Fatalf("%s: Len %d, Empty %t of %d indexes", what, got.Len(), got.Empty(), len(want))
	}
	for i, r := range got.Ranges() {
		if r.First > r.Last || (i > 0 && int64(r.First) <= int64(got.Ranges()[i-1].Last)+1) {
			t.Fatalf("%s: ranges overlap, touch, or are empty: %v", what, got.Ranges())
		}
	}
}

func TestSetAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, ma := drawSet(t, "a")
		b, mb := drawSet(t, "b")
		n := drawIndex(t, "n")
		union, minus, both, below := model{}, model{}, model{}, model{}
		for ix := range ma {
			union[ix] = true
			if mb[ix] {
				both[ix] = true
			} else {
				minus[ix] = true
			}
			if ix < n {
				below[ix] = true
			}
		}
		for ix := range mb {
			union[ix] = true
		}
		same(t, "Union", a.Union(b), union)
		same(t, "Minus", a.Minus(b), minus)
		same(t, "Intersect", a.Intersect(b), both)
		same(t, "Below", a.Below(n), below)
		same(t, "a after all that", a, ma)
		same(t, "b after all that", b, mb)
		for range 5 {
			ix := drawIndex(t, "ix")
			if a.Has(ix) != ma[ix] {
				t.Fatalf("Has(%d) = %t", ix, a.Has(ix))
			}
		}
		again, ok := indexset.FromRanges(a.Ranges())
		if !ok {
			t.Fatalf("FromRanges refuses %v", a.Ranges())
		}
		same(t, "FromRanges", again, ma)
	})
}

func TestFirstMissingAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, m := drawSet(t, "a")
		most := rapid.Int32Range(-1, 40).Draw(t, "count")
		n := rapid.Int32Range(-1, 60).Draw(t, "n")
		want := model{}
		for ix := int32(0); ix < n && len(want) < int(max(most, 0)); ix++ {
			if !m[ix] {
				want[ix] = true
			}
		}
		same(t, "FirstMissing", a.FirstMissing(most, n), want)
	})
}

func TestFirstMissingAtTheTop(t *testing.T) {
	full, _ := indexset.FromRanges([]indexset.Range{{First: 1, Last: indexset.Max}})
	got := full.FirstMissing(1<<31-1, 1<<31-1)
	if diff := cmp.Diff([]indexset.Range{{First: 0, Last: 0}}, got.Ranges()); diff != "" {
		t.Errorf("the one that is missing (-want +got):\n%s", diff)
	}
	all := indexset.Set{}.FirstMissing(1<<31-1, 1<<31-1)
	if all.Len() != 1<<31-1 || !all.Has(indexset.Max) {
		t.Errorf("all of them: %v", all.Ranges())
	}
}

func TestFromRangesRefuses(t *testing.T) {
	cases := map[string][]indexset.Range{
		"a negative first":         {{First: -1, Last: 3}},
		"a range that ends early":  {{First: 3, Last: 2}},
		"an index above the limit": {{First: 0, Last: 1<<31 - 1}},
		"ranges that overlap":      {{First: 0, Last: 3}, {First: 3, Last: 5}},
		"ranges out of order":      {{First: 5, Last: 6}, {First: 0, Last: 3}},
		"the same range twice":     {{First: 5, Last: 6}, {First: 5, Last: 6}},
	}
	for name, ranges := range cases {
		t.Run(name, func(t *testing.T) {
			if s, ok := indexset.FromRanges(ranges); ok || !s.Empty() {
				t.Errorf("FromRanges(%v) = %v, %t", ranges, s.Ranges(), ok)
			}
		})
	}
}

func TestFromRangesJoinsNeighbours(t *testing.T) {
	s, ok := indexset.FromRanges([]indexset.Range{{First: 0, Last: 1}, {First: 2, Last: 2}, {First: 4, Last: 5}})
	if diff := cmp.Diff([]indexset.Range{{First: 0, Last: 2}, {First: 4, Last: 5}}, s.Ranges()); !ok || diff != "" {
		t.Errorf("ok %t (-want +got):\n%s", ok, diff)
	}
}

func TestOfLeavesOutWhatNoSetHolds(t *testing.T) {
	s := indexset.Of(-1, 1<<31-1, 2, 1, 2)
	if diff := cmp.Diff([]indexset.Range{{First: 1, Last: 2}}, s.Ranges()); diff != "" {
		t.Errorf("Of (-want +got):\n%s", diff)
	}
}

func TestAllStopsWhenTold(t *testing.T) {
	var got []int32
	for ix := range indexset.Of(1, 2, 3, 7).All {
		if got = append(got, ix); len(got) == 2 {
			break
		}
	}
	if diff := cmp.Diff([]int32{1, 2}, got); diff != "" {
		t.Errorf("All (-want +got):\n%s", diff)
	}
}
