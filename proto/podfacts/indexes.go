package podfacts

import (
	"maps"
	"math/bits"
	"slices"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const (
	// noIndex stands for a pod without a usable completion index.
	noIndex int32 = -1
	// maxIndex is the highest index that the contract allows.
	maxIndex = 1<<31 - 2
)

const (
	wordBits  = 64
	pageWords = 64
	pageBits  = wordBits * pageWords
)

// page holds the members among pageBits neighbouring indexes.
type page struct {
	words [pageWords]uint64
	n     int
}

// indexes is a multiset of completion indexes: one bit for each index, and a count for the
// few indexes that occur more than once. Its memory grows with the number of members, not
// with the highest one, because an index comes from an annotation that anybody may write.
type indexes struct {
	pages map[int32]*page
	extra map[int32]int32
}

// IndexSet returns a set of completion indexes, none below 0; nil if there are none.
func IndexSet(members []int32) *jobpolicyv1.IndexSet {
	var s indexes
	for _, ix := range members {
		s.add(ix)
	}
	return s.set()
}

// change adds one occurrence of ix (sign 1) or removes one (-1).
func (s *indexes) change(ix, sign int32) {
	if sign > 0 {
		s.add(ix)
		return
	}
	s.remove(ix)
}

func (s *indexes) add(ix int32) {
	p := s.pages[ix/pageBits]
	if p == nil {
		p = &page{}
		if s.pages == nil {
			s.pages = map[int32]*page{}
		}
		s.pages[ix/pageBits] = p
	}
	word, bit := &p.words[ix%pageBits/wordBits], uint64(1)<<(ix%wordBits)
	if *word&bit == 0 {
		*word |= bit
		p.n++
		return
	}
	if s.extra == nil {
		s.extra = map[int32]int32{}
	}
	s.extra[ix]++
}

// has reports whether ix is a member.
func (s *indexes) has(ix int32) bool {
	p := s.pages[ix/pageBits]
	return ix >= 0 && p != nil && p.words[ix%pageBits/wordBits]&(1<<(ix%wordBits)) != 0
}

// remove removes one occurrence of ix, which must be a member.
func (s *indexes) remove(ix int32) {
	if n := s.extra[ix]; n > 0 {
		s.extra[ix] = n - 1
		if n == 1 {
			delete(s.extra, ix)
		}
		return
	}
	p := s.pages[ix/pageBits]
	if p == nil {
		return
	}
	p.words[ix%pageBits/wordBits] &^= uint64(1) << (ix % wordBits)
	p.n--
	if p.n == 0 {
		delete(s.pages, ix/pageBits)
	}
}

// set returns the distinct members as ranges, or nil when there are none.
func (s *indexes) set() *jobpolicyv1.IndexSet {
	if len(s.pages) == 0 {
		return nil
	}
	var out jobpolicyv1.IndexSet
	for _, number := range slices.Sorted(maps.Keys(s.pages)) {
		for w, word := range s.pages[number].words {
			appendWord(&out, number*pageBits+int32(w)*wordBits, word)
		}
	}
	return &out
}

// appendWord appends the members of one word, whose first index is base. Adjacent members
// extend the last range.
func appendWord(out *jobpolicyv1.IndexSet, base int32, word uint64) {
	for word != 0 {
		from := bits.TrailingZeros64(word)
		length := bits.TrailingZeros64(^(word >> from))
		first, last := base+int32(from), base+int32(from+length-1)
		appendRange(out, first, last)
		if from+length == wordBits {
			return
		}
		word &^= (uint64(1)<<length - 1) << from
	}
}

func appendRange(out *jobpolicyv1.IndexSet, first, last int32) {
	if n := len(out.Ranges); n > 0 && out.Ranges[n-1].Last == first-1 {
		out.Ranges[n-1].Last = last
		return
	}
	out.Ranges = append(out.Ranges, &jobpolicyv1.IndexRange{First: first, Last: last})
}
