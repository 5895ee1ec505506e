// Package indexset holds sets of completion indexes as sorted ranges.
//
// The API allows a Job billions of indexes; in practice it has up to 100,000. The
// operations are union, difference and "the first n that are missing". Their time and
// memory grow with the number of ranges, not of indexes.
//
// Weighed against RoaringBitmap v2: the contract and the API have ranges, so each set
// would be converted twice.
package indexset

import (
	"slices"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Max is the highest index a set may hold: the highest value of spec.completions,
// minus 1.
const Max = 1<<31 - 2

// A Range is a run of indexes, both ends included.
type Range struct {
	First, Last int32
}

// A Set is a set of indexes from 0 to Max. The zero value is the empty set.
// Sets are values: no operation changes its operands.
//
// Invariants: ranges are in ascending order, none is empty, and no two overlap
// or touch.
type Set struct {
	ranges []Range
}

// Of returns the set of the given indexes, which may come in any order and more than
// once. Indexes outside of 0 to Max are ignored.
func Of(indexes ...int32) Set {
	sorted := make([]int32, 0, len(indexes))
	for _, ix := range indexes {
		if ix >= 0 && ix <= Max {
			sorted = append(sorted, ix)
		}
	}
	slices.Sort(sorted)
	var b builder
	for _, ix := range sorted {
		b.add(Range{ix, ix})
	}
	return b.set()
}

// FromRanges returns the union of ranges that are in ascending order of First. ok is
// false if they are not, or if one is empty or leaves 0 to Max. Adjacent ranges are
// joined; overlapping ranges are refused.
func FromRanges(ranges []Range) (s Set, ok bool) {
	b := builder{make([]Range, 0, len(ranges))}
	previous := int32(-1)
	for _, r := range ranges {
		if r.First <= previous || r.Last < r.First || r.Last > Max {
			return Set{}, false
		}
		b.add(r)
		previous = r.Last
	}
	return b.set(), true
}

// Read returns the set of a message of the contract. ok is false if its ranges break the
// rules of FromRanges.
func Read(m *jobpolicyv1.IndexSet) (s Set, ok bool) {
	ranges := make([]Range, len(m.GetRanges()))
	for i, r := range m.GetRanges() {
		ranges[i] = Range{r.GetFirst(), r.GetLast()}
	}
	return FromRanges(ranges)
}

// Message returns s as the contract has it.
func (s Set) Message() *jobpolicyv1.IndexSet {
	m := &jobpolicyv1.IndexSet{}
	if s.Empty() {
		return m
	}
	ranges := make([]jobpolicyv1.IndexRange, len(s.ranges))
	m.Ranges = make([]*jobpolicyv1.IndexRange, len(ranges))
	for i, r := range s.ranges {
		ranges[i].First, ranges[i].Last = r.First, r.Last
		m.Ranges[i] = &ranges[i]
	}
	return m
}

// Ranges returns the runs of s in ascending order. The caller must not change
// them.
func (s Set) Ranges() []Range { return s.ranges }

// Empty reports whether s has no index.
func (s Set) Empty() bool { return len(s.ranges) == 0 }

// Len returns the number of indexes in s.
func (s Set) Len() int64 {
	var n int64
	for _, r := range s.ranges {
		n += int64(r.Last) - int64(r.First) + 1
	}
	return n
}

// Has reports whether ix is in s.
func (s Set) Has(ix int32) bool {
	i := s.search(ix)
	return i < len(s.ranges) && s.ranges[i].First <= ix
}

// search returns the position of the first range that ends at or after ix.
func (s Set) search(ix int32) int {
	low, high := 0, len(s.ranges)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if s.ranges[middle].Last < ix {
			low = middle + 1
			continue
		}
		high = middle
	}
	return low
}

// Below returns the indexes of s that are less than n.
func (s Set) Below(n int32) Set {
	if n <= 0 {
		return Set{}
	}
	i := s.search(n)
	if i == len(s.ranges) {
		return s
	}
	cut := append([]Range(nil), s.ranges[:i]...)
	if r := s.ranges[i]; r.First < n {
		cut = append(cut, Range{r.First, n - 1})
	}
	return Set{cut}
}

// Union returns the indexes that are in s or in t.
func (s Set) Union(t Set) Set {
	if s.Empty() {
		return t
	}
	if t.Empty() {
		return s
	}
	var b builder
	a, c := s.ranges, t.ranges
	for len(a) > 0 && len(c) > 0 {
		if a[0].First <= c[0].First {
			b.add(a[0])
			a = a[1:]
			continue
		}
		b.add(c[0])
		c = c[1:]
	}
	for _, r := range a {
		b.add(r)
	}
	for _, r := range c {
		b.add(r)
	}
	return b.set()
}

// Minus returns the indexes that are in s but not in t.
func (s Set) Minus(t Set) Set {
	var b builder
	holes := t.ranges
	for _, r := range s.ranges {
		for len(holes) > 0 && holes[0].Last < r.First {
			holes = holes[1:]
		}
		first := r.First
		for _, h := range holes {
			if h.First > r.Last {
				break
			}
			if h.First > first {
				b.add(Range{first, h.First - 1})
			}
			first = h.Last + 1
		}
		if first <= r.Last {
			b.add(Range{first, r.Last})
		}
	}
	return b.set()
}

// Intersect returns the indexes that are in both s and t.
func (s Set) Intersect(t Set) Set {
	var b builder
	a, c := s.ranges, t.ranges
	for len(a) > 0 && len(c) > 0 {
		first, last := max(a[0].First, c[0].First), min(a[0].Last, c[0].Last)
		if first <= last {
			b.add(Range{first, last})
		}
		if a[0].Last < c[0].Last {
			a = a[1:]
			continue
		}
		c = c[1:]
	}
	return b.set()
}

// FirstMissing returns the lowest count indexes below n that are not in s; fewer
// if there are not as many.
func (s Set) FirstMissing(count, n int32) Set {
	var b builder
	next := int32(0)
	take := func(end int32) {
		if free := min(end-next, count); free > 0 {
			b.add(Range{next, next + free - 1})
			count -= free
		}
	}
	for _, r := range s.ranges {
		if count <= 0 || next >= n {
			return b.set()
		}
		take(min(r.First, n))
		next = r.Last + 1
	}
	if next < n {
		take(n)
	}
	return b.set()
}

// All calls yield for each index of s in ascending order until it returns
// false. Callers bound the size of s first.
func (s Set) All(yield func(int32) bool) {
	for _, r := range s.ranges {
		for ix := r.First; ix <= r.Last; ix++ {
			if !yield(ix) {
				return
			}
		}
	}
}

// A builder joins ranges that come in ascending order of First.
type builder struct {
	ranges []Range
}

func (b *builder) add(r Range) {
	if n := len(b.ranges); n > 0 && r.First <= b.ranges[n-1].Last+1 {
		b.ranges[n-1].Last = max(b.ranges[n-1].Last, r.Last)
		return
	}
	b.ranges = append(b.ranges, r)
}

func (b *builder) set() Set { return Set{b.ranges} }
