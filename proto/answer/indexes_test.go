package answer

import (
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func TestParseIndexes(t *testing.T) {
	cases := map[string][][2]int32{
		"":           nil,
		"3":          {{3, 3}},
		"0-2,4":      {{0, 2}, {4, 4}},
		"0,1,7-9":    {{0, 0}, {1, 1}, {7, 9}}, // Intervals stay as they are.
		"2147483646": {{2147483646, 2147483646}},
	}
	for text, ranges := range cases {
		want := &jobpolicyv1.IndexSet{}
		for _, r := range ranges {
			want.Ranges = append(want.Ranges, &jobpolicyv1.IndexRange{First: r[0], Last: r[1]})
		}
		if got, err := ParseIndexes(text); err != nil || !proto.Equal(got, want) {
			t.Errorf("%q: got %s and error %v, want %s", text, prototext.Format(got), err, prototext.Format(want))
		}
	}
	for _, text := range []string{"a", "1,", "3-1", "2,1", "1-3,3", "-1", "1-", "99999999999"} {
		if set, err := ParseIndexes(text); err == nil {
			t.Errorf("%q is read as %v", text, set)
		}
	}
}
