package wire

import (
	"strconv"

	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// ParseIndexes is answer.ParseIndexes, and joins neighbours: "0,1" becomes the range (0,1).
func ParseIndexes(s string) (*jobpolicyv1.IndexSet, error) {
	read, err := answer.ParseIndexes(s)
	if err != nil {
		return nil, err
	}
	set := &jobpolicyv1.IndexSet{}
	for _, r := range read.Ranges {
		if n := len(set.Ranges); n > 0 && r.First == set.Ranges[n-1].Last+1 {
			set.Ranges[n-1].Last = r.Last
			continue
		}
		set.Ranges = append(set.Ranges, r)
	}
	return set, nil
}

// FormatIndexes is the reverse of ParseIndexes. Two neighbours are written one
// by one, three or more as a range, as the upstream controller does.
func FormatIndexes(set *jobpolicyv1.IndexSet) string {
	var b []byte
	for _, r := range set.GetRanges() {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(r.GetFirst()), 10)
		switch r.GetLast() - r.GetFirst() {
		case 0:
			continue
		case 1:
			b = append(b, ',')
		default:
			b = append(b, '-')
		}
		b = strconv.AppendInt(b, int64(r.GetLast()), 10)
	}
	return string(b)
}
