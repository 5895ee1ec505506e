package answer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

var errIndexes = errors.New("malformed index list")

// ParseIndexes reads Kubernetes' notation of index sets, such as "1,3-5". Each range is one interval of the
// text: CheckJobStatus needs that, and every other question accepts it. The empty text is the empty set.
func ParseIndexes(text string) (*jobpolicyv1.IndexSet, error) {
	set := &jobpolicyv1.IndexSet{}
	if text == "" {
		return set, nil
	}
	for interval := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(interval, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseInt(from, 10, 32)
		last, err2 := strconv.ParseInt(to, 10, 32)
		if err1 != nil || err2 != nil || first < 0 || last < first {
			return nil, fmt.Errorf("%q: %w", interval, errIndexes)
		}
		if n := len(set.Ranges); n > 0 && int32(first) <= set.Ranges[n-1].Last {
			return nil, fmt.Errorf("%q is out of order: %w", interval, errIndexes)
		}
		set.Ranges = append(set.Ranges, &jobpolicyv1.IndexRange{First: int32(first), Last: int32(last)})
	}
	return set, nil
}
