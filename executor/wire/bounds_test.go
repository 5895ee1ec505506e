package wire

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func TestTimesAreBroughtWithinBounds(t *testing.T) {
	in2026 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cases := map[string]struct{ in, want time.Time }{
		"a time of the calendar": {in2026, in2026},
		"the year 0":             {time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), earliest},
		"the year 10000":         {time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), latest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Timestamp(tc.in)
			if diff := cmp.Diff(timestamppb.New(tc.want), got, protocmp.Transform()); diff != "" || !got.IsValid() {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTextsAreBroughtWithinBounds(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"short enough":              {"12345678", "12345678"},
		"too long":                  {"123456789", "12345…"},
		"cut between characters":    {"1234äöüß", "1234…"},
		"not UTF-8":                 {"a\xffb", "a\uFFFDb"},
		"too long once it is UTF-8": {"\xff1\xff2\xff3", "\uFFFD1…"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Text(tc.in, 8); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
