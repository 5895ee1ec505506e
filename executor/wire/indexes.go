package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var errIndexes = errors.New("malformed index list")

// ParseIndexes reads Kubernetes' notation of index sets, such as "1,3-5". The
// empty string is the empty set.
func ParseIndexes(s string) (*jobpolicyv1.IndexSet, error) {
	set := &jobpolicyv1.IndexSet{}
	if s == "" {
		return set, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseInt(from, 10, 32)
		last, err2 := strconv.ParseInt(to, 10, 32)
		if err1 != nil || err2 != nil || first < 0 || last < first {
			return nil, fmt.Errorf("%q: %w", part, errIndexes)
		}
		n := len(set.Ranges)
		switch {
		case n > 0 && int32(first) <= set.Ranges[n-1].Last:
			return nil, fmt.Errorf("%q is out of order: %w", part, errIndexes)
		case n > 0 && int32(first) == set.Ranges[n-1].Last+1:
			set.Ranges[n-1].Last = int32(last)
		default:
			set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: int32(first), Last: int32(last)})
		}
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
